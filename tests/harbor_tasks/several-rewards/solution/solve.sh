#!/bin/bash
cd /app
sort -n numbers.txt > sorted && cat sorted > numbers.txt
