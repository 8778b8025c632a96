#!/usr/bin/env bash
# Makes this machine able to run Apiary: Python environment, Docker engine, base image.
#
# Safe to run any number of times; what is there already is left alone. Everything it writes
# lies in this checkout (.venv and .apiary) and in Docker, but for Debian packages, which it
# installs only as root and only where they are missing. Each step says in one line what and why.
set -euo pipefail
umask 022

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
state=$root/.apiary
venv=$root/.venv
lock=$root/deploy/requirements.lock
pulled_base=python:3.12-slim-bookworm

say() { printf '· %s\n' "$*" >&2; }
die() { printf '✗ %s\n' "$*" >&2; exit 5; }
can_apt() { [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; }

apt_install() { # packages…: install them, refreshing the lists only if that fails at first
    local options=(-y -qq --no-install-recommends -o DPkg::Lock::Timeout=120)
    export DEBIAN_FRONTEND=noninteractive
    apt-get install "${options[@]}" "$@" >>"$state/apt.log" 2>&1 && return
    { apt_update && apt-get install "${options[@]}" "$@"; } >>"$state/apt.log" 2>&1 ||
        die "apt-get could not install $*: see .apiary/apt.log"
}

apt_update() { # waits for another apt, as on a machine's first start: its lists know no timeout
    local deadline=$((SECONDS + 120)) said
    until said=$(LC_ALL=C apt-get update -qq 2>&1); do
        printf '%s\n' "$said"
        [[ $said == *'Could not get lock'* ]] && [ $SECONDS -lt $deadline ] || return 1
        sleep 1
    done
}

# Python ------------------------------------------------------------------------------------

find_python() { # prints the first interpreter that is new enough
    local candidate
    for candidate in python3 python3.13 python3.12 python3.11; do
        if command -v "$candidate" >/dev/null &&
            "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            command -v "$candidate"
            return
        fi
    done
    return 1
}

make_venv() { # interpreter
    if ! "$1" -c 'import ensurepip, venv' 2>/dev/null; then
        can_apt || die "Python's venv module is missing: install the package python3-venv"
        say "installing python3-venv: Debian's python3 cannot make environments without it"
        apt_install python3-venv
    fi
    say "creating .venv with $("$1" --version): Apiary's packages stay out of the system's Python"
    rm -rf "$venv"
    "$1" -m venv "$venv"
}

setup_python() {
    local python wanted stamp=$venv/apiary-setup
    # The path counts: the scripts of an environment name it, so a moved checkout needs a new one.
    wanted=$(cat "$lock" "$root/pyproject.toml" | sha256sum | cut -d' ' -f1)" $venv"
    if [ -x "$venv/bin/apiary" ] && [ "$(cat "$stamp" 2>/dev/null)" = "$wanted" ] &&
        "$venv/bin/python" -c '' 2>/dev/null; then
        say "Python packages are those of deploy/requirements.lock already"
        return
    fi
    if ! { [ -x "$venv/bin/python" ] && "$venv/bin/python" -m pip --version >/dev/null 2>&1 &&
        grep -q " $venv\$" "$stamp" 2>/dev/null; }; then
        python=$(find_python) ||
            die "Python 3.11 or newer is needed, and none of python3, python3.11 … 3.13 is: install it"
        make_venv "$python"
    fi
    say "installing the packages of deploy/requirements.lock: exact versions, checked by hash"
    # Compiling every file costs more than all of the rest; Python compiles what is used anyway.
    local pip=("$venv/bin/python" -m pip --disable-pip-version-check --no-cache-dir -q)
    "${pip[@]}" install --no-compile --require-hashes --only-binary :all: -r "$lock" ||
        die "pip could not install deploy/requirements.lock: see its message above"
    "${pip[@]}" install --no-deps --no-build-isolation -e "$root"
    printf '%s\n' "$wanted" >"$stamp"
}

# Docker ------------------------------------------------------------------------------------

docker_answers() { command -v docker >/dev/null && timeout 20 docker info >/dev/null 2>&1; }

start_dockerd() { # a daemon that outlives this script, on a machine without a service manager
    if [ -d /run/systemd/system ]; then
        say "starting Docker through systemd"
        systemctl start docker >&2 && return
    fi
    if [ -z "$(ls -A /sys/fs/cgroup 2>/dev/null)" ]; then
        say "mounting the control groups: containers are limited and watched through them"
        command -v cgroupfs-mount >/dev/null || apt_install cgroupfs-mount
        cgroupfs-mount
    fi
    say "starting dockerd in the background: trials run in containers (log: .apiary/dockerd.log)"
    setsid --fork dockerd </dev/null >>"$state/dockerd.log" 2>&1 9>&-
}

wait_for_docker() {
    local deadline=$((SECONDS + 90))
    until docker_answers; do
        [ $SECONDS -lt $deadline ] ||
            die "Docker did not answer within 90 s: see .apiary/dockerd.log or journalctl -u docker"
        sleep 1
    done
}

setup_docker() {
    if docker_answers; then
        say "Docker answers: engine $(docker version --format '{{.Server.Version}}')"
        return
    fi
    if [ "$(id -u)" != 0 ]; then
        die "no Docker engine answers: start one (sudo systemctl start docker) and let this user reach it"
    fi
    if ! command -v dockerd >/dev/null; then
        can_apt || die "no Docker engine answers: install Docker Engine 20.10 or newer and start it"
        say "installing docker.io with apt: every trial runs in its own container"
        local extra=()
        grep -qs Y /sys/module/apparmor/parameters/enabled && extra=(apparmor)
        apt_install docker.io iptables "${extra[@]}"
        command -v docker >/dev/null || apt_install docker-cli
    fi
    docker_answers || { start_dockerd && wait_for_docker; }
}

# Base image --------------------------------------------------------------------------------

has_image() { docker image inspect "$1" >/dev/null 2>&1; }

apt_mirror() { # prints the first web mirror that apt itself uses
    local line_style='s/^deb[[:space:]]\(\[[^]]*\][[:space:]]*\)\{0,1\}\([^[:space:]]*\).*/\2/p'
    {
        cat /etc/apt/sources.list.d/debian.sources /etc/apt/sources.list.d/*.sources 2>/dev/null |
            sed -n 's/^URIs:[[:space:]]*//p'
        cat /etc/apt/sources.list 2>/dev/null | sed -n "$line_style"
    } | tr ' ' '\n' | sed -n '/^https\{0,1\}:\/\//{p;q;}'
}

build_local_base() ( # tag suite; a subshell, so that its trap always removes the folder
    mirror=$(apt_mirror || true)
    [ -n "$mirror" ] || die "no base image: no registry is reached, and apt names no web mirror"
    command -v debootstrap >/dev/null || apt_install debootstrap
    eval "$(apt-config shell http_proxy Acquire::http::Proxy)"
    [ -z "${http_proxy:-}" ] || export http_proxy
    folder=$(mktemp -d "${TMPDIR:-/var/tmp}/apiary-base.XXXXXX")
    # debootstrap mounts proc and sys inside; they must be gone before the folder is removed.
    trap 'umount -l "$folder"/tree/{proc,sys} 2>/dev/null || true
        rm -rf --one-file-system "$folder"' EXIT
    debootstrap --variant=minbase --include=python3,python-is-python3,ca-certificates \
        "$2" "$folder/tree" "$mirror" >"$state/debootstrap.log" 2>&1 ||
        die "debootstrap failed: see .apiary/debootstrap.log"
    rm -rf "$folder"/tree/var/cache/apt/archives/*.deb "$folder"/tree/var/lib/apt/lists/*
    tar -C "$folder/tree" --numeric-owner --one-file-system -c . |
        docker import --change 'CMD ["python3"]' --change 'LABEL apiary.base=local' - "$1" >/dev/null
)

setup_base() {
    local suite local_base reference=${APIARY_BASE_IMAGE:-}
    suite=$(. /etc/os-release && printf '%s' "${VERSION_CODENAME:-bookworm}")
    local_base=apiary-base:$suite
    if [ -n "$reference" ]; then
        has_image "$reference" || die "APIARY_BASE_IMAGE=$reference is not an image of this engine: pull it"
        say "base image $reference: APIARY_BASE_IMAGE asks for it"
    elif has_image "$pulled_base"; then
        reference=$pulled_base
        say "base image $reference is there: task images are built on it"
    elif has_image "$local_base"; then
        reference=$local_base
        say "base image $reference is there: built here earlier, when no registry was reached"
    elif timeout 180 docker pull -q "$pulled_base" >"$state/pull.log" 2>&1; then
        reference=$pulled_base
        say "pulled the base image $reference: task images are built on it"
    elif can_apt; then
        say "no registry is reached: building $local_base from Debian packages instead (about a minute)"
        build_local_base "$local_base" "$suite"
        reference=$local_base
    else
        die "no base image: let Docker reach a registry and run 'docker pull $pulled_base'"
    fi
    printf '%s\n' "$reference" >"$state/base-image"
}

main() {
    mkdir -p "$state"
    # Two at once would install over one another.
    exec 9>"$state/setup.lock"
    flock -w 900 9 || die "another setup holds .apiary/setup.lock"
    setup_python
    setup_docker
    setup_base
    exec 9>&-
}

main
