#!/bin/bash
found=$(python3 -c '
import urllib.request
print(urllib.request.urlopen("http://localhost:8080/page.txt", timeout=10).read().decode().strip())
')
if [ "$found" = "$WANTED" ]; then reward=1.0; else reward=0.0; fi
printf '{"reward": %s, "answered": %s}\n' "$reward" "$reward" > /logs/verifier/reward.json
