#!/bin/bash
if [ "$(cat /etc/motd)" = welcome ] && [ "$(id -u)" = 0 ] && [ "$(stat -c %U /etc/motd)" = nobody ]; then
  echo 1 > /logs/verifier/reward.txt
else
  echo 0 > /logs/verifier/reward.txt
fi
