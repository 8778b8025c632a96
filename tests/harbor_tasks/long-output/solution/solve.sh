#!/bin/bash
set -e
echo first
for n in 1 2 3; do head -c 10000000 /dev/zero | tr '\0' 'x'; echo; done
echo last
touch /app/said
