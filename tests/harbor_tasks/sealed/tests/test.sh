#!/bin/bash
if [ "$(cat /app/names.txt)" = lo ] && [ "$(ls /sys/class/net)" = lo ]; then
  echo 1 > /logs/verifier/reward.txt
else
  echo 0 > /logs/verifier/reward.txt
fi
