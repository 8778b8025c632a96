#!/bin/bash
set -e
mkdir -p /app/www
echo served > /app/www/page.txt
setsid python3 -m http.server --directory /app/www 8080 </dev/null >/dev/null 2>&1 &
until python3 -c 'import urllib.request as u; u.urlopen("http://localhost:8080")' 2>/dev/null; do
  sleep 0.1
done
