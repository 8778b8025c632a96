#!/bin/bash
if python3 -c 'import urllib.request as u; u.urlopen("http://localhost:8080/page.txt")' 2>/dev/null; then
  echo 1 > /logs/verifier/reward.txt
else
  echo 0 > /logs/verifier/reward.txt
fi
