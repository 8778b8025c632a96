#!/bin/bash
printf '1\n2\n3\n' > /app/lines.txt
