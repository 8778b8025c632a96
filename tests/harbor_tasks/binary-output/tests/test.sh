#!/bin/bash
printf '\377\376\0\001tests\n'
if [ "$(ls /app | wc -l)" -eq 1 ]; then
  echo 1 > /logs/verifier/reward.txt
else
  echo 0 > /logs/verifier/reward.txt
fi
