"""The production stack in a container: its programs, mounted, and the first process above them.

The programs come from the store by their digests, once per node. The first process is a POSIX
shell, so an image needs no Python: it starts each agent with an environment of its own, then
becomes another shell, so that nobody finds the agents' keys in its ``/proc`` entry. Above each
agent a third one waits to tell how it ended. At SIGUSR1 the agents are killed with all below them,
as the reference agent's supervisor does it; then nothing is left of the first process but a sleep.
"""

from __future__ import annotations

import platform
import shlex
import shutil
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path

from workers.contract.base import sha256_hex
from workers.contract.buzz import HEAD_BYTES, PROGRAMS, BuzzStack, program_key, program_problem
from workers.contract.outcome import Cause
from workers.storage.interface import Store, StoreError
from workers.trial.buzz_environment import BIN, PROMPTS
from workers.trial.errors import PhaseError, cause_of_store
from workers.trial.files import publish
from workers.trial.handoff import AGENTS_VARIABLE

FROZEN = "frozen"
"""The freeze's mark beside the prompts: no agent is to be started any more."""
SERVED = "served"
"""The launch's: relay and gateway listen."""
LOOK_S = 0.02
OOM_SCORE = 100
"""Added to an agent's: the kernel takes it before those who are to tell of it."""

_FIRST = f"""\
apiary_limit=$1 apiary_keep=$2 apiary_stay=$3 apiary_agents=${AGENTS_VARIABLE} apiary_pids=
unset {AGENTS_VARIABLE}
[ -e {PROMPTS}/{FROZEN} ] && exec sleep "$apiary_limit"
while [ ! -e {PROMPTS}/{SERVED} ]; do sleep {LOOK_S} 2>/dev/null || sleep 1; done
agent() {{
    apiary_id=$1
    shift
    (
        apiary_path=$PATH
        for apiary_pair; do export "$apiary_pair"; done
        exec /bin/sh -c "$apiary_keep" "$apiary_id" "$apiary_path"
    ) &
    apiary_pids="$apiary_pids $!"
}}
eval "$apiary_agents"
exec /bin/sh -c "$apiary_stay" sh "$apiary_limit" $apiary_pids
"""
"""Starts the agents once relay and gateway are there, and forgets their keys.

``buzz-acp`` that finds no relay comes again only after a second.
"""

_KEEP = f"""\
(
    echo {OOM_SCORE} 2>/dev/null >/proc/self/oom_score_adj
    exec {BIN}/buzz-acp
) </dev/null >>/logs/agents/$0.stdout.log 2>>/logs/agents/$0.stderr.log
apiary_code=$?
PATH=$1
rm -rf /logs/agents/$0.exit.partial
set -C
printf '{{"exit_code": %d, "signal": null}}' "$apiary_code" >/logs/agents/$0.exit.partial
mv -f /logs/agents/$0.exit.partial /logs/agents/$0.exit.json
"""
"""Runs one agent, whose id is the script's name, and tells how it ended.

What the agent put where that is told may take away the telling, but is not waited for. The path
is that of the container, whatever the agent's own is.
"""

_STAY = """\
apiary_limit=$1 apiary_frozen= apiary_roots= apiary_below= apiary_round=0
shift
trap 'apiary_frozen=1' USR1
trap 'exit 124' USR2
(sleep "$apiary_limit"; kill -USR2 1) &
apiary_children="$* $!"
while [ -z "$apiary_frozen" ]; do
    wait && break
done
apiary_look() {
    apiary_state= apiary_parent=
    while read -r apiary_key apiary_value apiary_rest; do
        case $apiary_key in
            State:) apiary_state=$apiary_value ;;
            PPid:) apiary_parent=$apiary_value; break ;;
        esac
    done 2>/dev/null <"/proc/$1/status"
}
if [ -n "$apiary_frozen" ]; then
    for apiary_pid in $apiary_children; do
        apiary_look "$apiary_pid"
        if [ "$apiary_parent" = 1 ]; then
            kill -STOP "$apiary_pid" 2>/dev/null
            apiary_roots="$apiary_roots$apiary_pid "
        fi
    done
    apiary_tree=" $apiary_roots" apiary_new=1
    while [ -n "$apiary_new" ] && [ "$apiary_round" -lt 200 ]; do
        apiary_new= apiary_round=$((apiary_round + 1))
        for apiary_path in /proc/[0-9]*; do
            apiary_pid=${apiary_path#/proc/}
            case $apiary_tree in *" $apiary_pid "*) continue ;; esac
            apiary_look "$apiary_pid"
            case $apiary_tree in
                *" ${apiary_parent:-none} "*)
                    kill -STOP "$apiary_pid" 2>/dev/null
                    apiary_tree="$apiary_tree$apiary_pid " apiary_new=1
                    apiary_below="$apiary_below $apiary_pid"
                    ;;
            esac
        done
    done
    kill -KILL $apiary_below 2>/dev/null
    apiary_round=0 apiary_new=1
    while [ -n "$apiary_new" ] && [ "$apiary_round" -lt 5000 ]; do
        apiary_new= apiary_round=$((apiary_round + 1))
        for apiary_pid in $apiary_below; do
            apiary_look "$apiary_pid"
            case $apiary_state in '' | Z | X) ;; *) apiary_new=1 ;; esac
        done
    done
    kill -KILL $apiary_roots 2>/dev/null
    wait
fi
exec sleep "$apiary_limit"
"""
"""Waits for the freeze, or for the end of the container's time.

What is to die is stopped first, since what is stopped forks no more: a round that finds nothing
new has found all. The children of the first process die last: who sees that they are gone knows
that nothing of theirs is about to go.
"""


def first_command(limit_s: int) -> tuple[str, ...]:
    """The container's command; it ends the container by itself after some seconds."""
    return ("/bin/sh", "-c", _FIRST, "sh", str(limit_s), _KEEP, _STAY)


def agents_text(agents: Iterable[tuple[str, Mapping[str, str]]]) -> str:
    """What the first process is to start: a line of shell for each id and its environment."""
    return "".join(
        shlex.join(["agent", name, *(f"{key}={value}" for key, value in variables.items())]) + "\n"
        for name, variables in agents
    )


def fetch_programs(store: Store, stack: BuzzStack, cache: Path) -> Path:
    """The folder with the stack's programs on this node; blocks.

    It is filled beside its final place and renamed, so that a reader sees it whole or not.

    Raises:
        PhaseError: the store did not give them, or gave other bytes than their digests say
            (``store_unavailable``); or this machine cannot run them (``agent_launch``).
        OSError: the disk refused.
    """
    final = cache / stack.digest
    if final.is_dir():
        return final
    cache.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix="fetch-", dir=cache))
    try:
        for name in PROGRAMS:
            _write(scratch / name, _program(store, name, stack.digests[name]))
        scratch.chmod(0o755)
        publish(scratch, final)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return final


def _program(store: Store, name: str, digest: str) -> bytes:
    try:
        data = store.get(program_key(digest))
    except StoreError as error:
        raise PhaseError(cause_of_store(error), f"agent program {name}: {error}") from error
    if sha256_hex(data) != digest:
        detail = f"agent program {name}: the store holds other bytes"
        raise PhaseError(Cause.STORE_UNAVAILABLE, detail)
    problem = program_problem(data[:HEAD_BYTES], platform.machine())
    if problem:
        raise PhaseError(Cause.AGENT_LAUNCH, f"agent program {name}: {problem}")
    return data


def _write(path: Path, data: bytes) -> None:
    path.write_bytes(data)
    # Containers run as any user.
    path.chmod(0o755)
