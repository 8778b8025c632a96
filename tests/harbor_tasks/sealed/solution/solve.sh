#!/bin/bash
set -e
ls /sys/class/net > /app/names.txt
! timeout 5 bash -c '</dev/tcp/192.0.2.1/80' 2>/dev/null
