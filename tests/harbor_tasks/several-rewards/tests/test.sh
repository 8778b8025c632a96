#!/bin/bash
sorted=$(sort -nc /app/numbers.txt 2>/dev/null && echo 1 || echo 0)
tidy=$([ "$(ls /app | wc -l)" -eq 1 ] && echo 1 || echo 0.5)
echo "{\"sorted\": $sorted, \"tidy\": $tidy}" > /logs/verifier/reward.json
