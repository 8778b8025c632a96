#!/bin/sh
set -eu

skill=/home/buzz/.claude/skills/context-health-check/SKILL.md
if [ -e "/inputs$skill" ]; then
  skill="/inputs$skill"
fi

mkdir -p /logs/verifier
exec python3 -B /tests/verify.py \
  --evidence /logs/artifacts/buzz-evidence.json \
  --skill-file "$skill" \
  --reward /logs/verifier/reward.json \
  --details /logs/verifier/details.json
