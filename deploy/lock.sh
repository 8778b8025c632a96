#!/usr/bin/env bash
# Writes deploy/requirements.lock anew from pyproject.toml: every package, pinned, with its hashes.
# Needs uv, which the lock itself does not hold: `pipx run uv` or `pip install uv` gives it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

uv pip compile pyproject.toml deploy/requirements.build.in \
    --extra dev --universal --python-version 3.11 --generate-hashes --no-annotate --quiet \
    --custom-compile-command 'bash deploy/lock.sh' \
    --output-file deploy/requirements.lock "$@"
