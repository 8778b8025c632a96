#!/bin/bash
head -c 10000000 /dev/zero | tr '\0' 'v'
if [ -e /app/said ]; then echo 1; else echo 0; fi > /logs/verifier/reward.txt
