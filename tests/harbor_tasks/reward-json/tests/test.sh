#!/bin/bash
lines=$(cat /app/lines.txt 2>/dev/null | wc -l)
full=$([ "$lines" -eq 3 ] && echo 1.0 || echo 0.0)
echo "{\"reward\": $full, \"lines\": $lines}" > /logs/verifier/reward.json
echo '{"why": "lines were counted"}' > /logs/verifier/details.json
