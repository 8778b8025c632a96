#!/usr/bin/env bash
# Sets this machine up and runs every check of the project: lint, format, types, import layers,
# the fast tests, then those that need Docker and Ray. A skipped test is a failure here.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# Every process would compile Ray and the tests anew; set-up leaves that to the first that needs it.
unset PYTHONDONTWRITEBYTECODE

# What some tests start beside Docker and Ray: Prometheus with promtool, and a browser.
install_for_tests() {
    local missing=() policy=/usr/sbin/policy-rc.d own_policy=
    { command -v prometheus && command -v promtool; } >/dev/null || missing+=(prometheus)
    command -v chromium >/dev/null || missing+=(chromium)
    [ ${#missing[@]} -gt 0 ] || return 0
    if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
        printf '✗ the tests need the commands prometheus, promtool and chromium: install %s\n' \
            "${missing[*]}" >&2
        exit 5
    fi
    printf '· installing %s: the tests run the real ones\n' "${missing[*]}" >&2
    # Debian would start Prometheus as a service: the tests start their own, and it would be left.
    if [ ! -e "$policy" ]; then
        own_policy=yes
        printf '#!/bin/sh\nexit 101\n' >"$policy"
        chmod 755 "$policy"
    fi
    local options=(-y -qq --no-install-recommends -o DPkg::Lock::Timeout=120) code=0
    export DEBIAN_FRONTEND=noninteractive
    apt-get install "${options[@]}" "${missing[@]}" >>.apiary/apt.log 2>&1 ||
        { apt-get update -qq && apt-get install "${options[@]}" "${missing[@]}"; } \
            >>.apiary/apt.log 2>&1 || code=5
    [ -z "$own_policy" ] || rm -f "$policy"
    if [[ " ${missing[*]} " == *' prometheus '* ]] && [ -d /run/systemd/system ]; then
        systemctl disable --now prometheus >/dev/null 2>&1 || true
    fi
    [ $code = 0 ] || {
        printf '✗ apt-get could not install %s: see .apiary/apt.log\n' "${missing[*]}" >&2
        exit $code
    }
}

bash deploy/setup.sh
install_for_tests
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
step 'long tests: servers, processes, measurements' pytest -q -n 2 -m 'long and not docker and not ray'
step 'tests with Docker and with Ray' pytest -q -n 2 --dist loadfile -m '(docker or ray) and not alone'
step 'tests that need the machine to themselves' pytest -q -m alone
