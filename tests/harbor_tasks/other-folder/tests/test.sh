#!/bin/bash
if [ "$PWD" = /srv/work ] && [ -e here ] && [ -e /srv/work/here ]; then
  echo 1 > /logs/verifier/reward.txt
else
  echo 0 > /logs/verifier/reward.txt
fi
