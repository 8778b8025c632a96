"""Kills processes with all that they started, as far as the kernel still tells who started whom.

A process whose parent has ended belongs to nobody's tree: a service that an agent was asked to
start lives on, and so does a process that forked twice to get away.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Collection
from contextlib import suppress

TIMEOUT_S = 5.0
"""After this what has been found is killed, whether or not more was forked meanwhile."""
LOOK_S = 0.002


def kill_trees(roots: Collection[int], timeout_s: float = TIMEOUT_S) -> None:
    """SIGKILL to some children of this process and to everything below them.

    They are stopped first, since what is stopped forks no more: a round that finds nothing new
    has found all. The children themselves die last, when all below them is dead: who sees from
    outside that they are gone knows that nothing of theirs is about to go.
    """
    ends = time.monotonic() + timeout_s
    stopped: set[int] = set()
    while time.monotonic() < ends:
        found = descendants(roots, os.getpid()) - stopped
        if not found:
            break
        for pid in found:
            _send(pid, signal.SIGSTOP)
        stopped |= found
    below = stopped - set(roots)
    for pid in below:
        _send(pid, signal.SIGKILL)
    ends = time.monotonic() + timeout_s
    while any(map(_runs, below)) and time.monotonic() < ends:
        time.sleep(LOOK_S)
    for pid in stopped - below:
        _send(pid, signal.SIGKILL)


def _runs(pid: int) -> bool:
    """Whether a process is more than an entry; its parent is stopped and cannot reap it."""
    try:
        return _stat(pid)[0] not in (b"Z", b"X")
    except OSError:
        return False


def _stat(pid: int) -> list[bytes]:
    """The fields of a process from its state on (proc(5))."""
    with open(f"/proc/{pid}/stat", "rb") as stream:
        # The second field is the program's name in parentheses and may hold anything.
        return stream.read().rpartition(b")")[2].split()


def descendants(roots: Collection[int], parent: int) -> set[int]:
    """Those of some processes that are still children of a parent, with all below them."""
    parents = read_parents()
    tree = {pid for pid in roots if parents.get(pid) == parent}
    added = set(tree)
    while added:
        added = {pid for pid, above in parents.items() if above in added} - tree
        tree |= added
    return tree


def read_parents() -> dict[int, int]:
    """Every process that can be seen, with its parent."""
    parents = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            with suppress(OSError):
                parents[int(name)] = int(_stat(int(name))[1])
    return parents


def _send(pid: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)
