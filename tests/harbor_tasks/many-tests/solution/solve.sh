#!/usr/bin/env python3
import json
import pathlib

lines = pathlib.Path('/data/log.txt').read_text().splitlines()
extra = json.loads(pathlib.Path(__file__).with_name('extra.json').read_text())
pathlib.Path('/app/report.json').write_text(json.dumps({'lines': len(lines), **extra}))
