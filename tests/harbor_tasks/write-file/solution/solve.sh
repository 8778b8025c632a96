#!/bin/bash
set -e
echo hello > /app/hello.txt
