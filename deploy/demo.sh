#!/usr/bin/env bash
# Sets this machine up and runs the demonstration: 36 attempts by three scripted agents through
# relay, container, gateway, verifier, store and report. Needs no key and no model.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# Every process would compile Ray and the tests anew; set-up leaves that to the first that needs it.
unset PYTHONDONTWRITEBYTECODE

bash deploy/setup.sh
printf '· running manifests/sweeps/demo.yaml: four tasks, three scripted agents, three attempts each\n' >&2
exec .venv/bin/apiary run manifests/sweeps/demo.yaml "$@"
