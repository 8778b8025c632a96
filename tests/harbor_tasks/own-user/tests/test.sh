#!/bin/bash
if [ "$(whoami)" = worker ] && [ "$(cat ~/who.txt)" = worker ] && ! touch /etc/mine 2>/dev/null; then
  echo 1 > /logs/verifier/reward.txt
else
  echo 0 > /logs/verifier/reward.txt
fi
