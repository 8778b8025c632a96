#!/bin/bash
if [ "$(cat /app/seen.txt 2>/dev/null || echo nothing)" = nothing ]; then
  echo 1 > /logs/verifier/reward.txt
else
  echo 0 > /logs/verifier/reward.txt
fi
