#!/bin/bash -e
echo done > /app/done.txt
false
rm /app/done.txt
