#!/usr/bin/env bash
# Sets this machine up and runs every check of the project: lint, format, types, import layers,
# the fast tests, then those that need Docker and Ray. A skipped test is a failure here.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# Every process would compile Ray and the tests anew; set-up leaves that to the first that needs it.
unset PYTHONDONTWRITEBYTECODE

bash deploy/setup.sh
bin=$PWD/.venv/bin
export PATH=$bin:$PATH APIARY_NO_SKIPS=1
APIARY_BASE_IMAGE=${APIARY_BASE_IMAGE:-$(cat .apiary/base-image)}
export APIARY_BASE_IMAGE

step() { # what, command…
    local started=$SECONDS
    printf '· %s\n' "$1" >&2
    "${@:2}"
    printf '  done in %d s\n' $((SECONDS - started)) >&2
}

step 'lint: ruff check' ruff check .
step 'format: ruff format --check' ruff format --check .
step 'types: mypy --strict on scheduler and workers' mypy
step 'import layers: lint-imports' lint-imports
# Read once here, since three processes that compile the same files at once take longer.
step 'collection: every test file can be read' pytest -q --collect-only --no-summary >/dev/null
step 'fast tests: no Docker, no Ray' pytest -q -n 3 -m 'not docker and not ray and not long'
step 'tests with Docker, with Ray, and long ones' pytest -q -m 'docker or ray or long'
