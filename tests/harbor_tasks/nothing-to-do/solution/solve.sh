#!/bin/bash
ls -A /tests > /app/seen.txt
[ -s /app/seen.txt ] || echo nothing > /app/seen.txt
