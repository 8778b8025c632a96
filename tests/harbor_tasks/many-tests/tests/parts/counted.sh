python3 -c "import json,sys; sys.exit(json.load(open('/app/report.json'))['lines'] != $1)" 2>/dev/null
