#!/usr/bin/env bash
# Writes both locks anew from pyproject.toml: every package, pinned, with its hashes.
# deploy/requirements.lock is for a checkout, deploy/images/requirements.lock for images: without
# what only tests need, with what only clusters do, and otherwise of the same versions.
# Needs uv, which the locks themselves do not hold: `pipx run uv` or `pip install uv` gives it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

compile() { # lock, options and sources…
    uv pip compile pyproject.toml deploy/requirements.build.in "${@:2}" \
        --universal --python-version 3.11 --generate-hashes --no-annotate --quiet \
        --custom-compile-command 'bash deploy/lock.sh' --output-file "$1"
}

compile deploy/requirements.lock --extra dev "$@"
compile deploy/images/requirements.lock deploy/images/requirements.in \
    --constraints deploy/requirements.lock "$@"
