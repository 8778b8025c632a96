#!/bin/bash
if [ "$(cat /app/place.txt)" = "$WANTED" ] && [ "$PLACE" = "$WANTED" ] && [ -z "$ONLY_SOLUTION" ]; then
  echo 1 > /logs/verifier/reward.txt
else
  echo 0 > /logs/verifier/reward.txt
fi
