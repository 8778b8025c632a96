"""Kills everything in a container but its first process, from the host, and proves it.

A group that is frozen cannot fork, so its list of processes is whole; each gets SIGKILL, the
group is thawed, and the list is read until only the first process is on it. Nothing that a
process inside does can keep it alive: it may ignore signals, leave its session or fork as fast as
it can.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterator

from workers.container.cgroup import Group
from workers.container.interface import Killed, Process

_FREEZE_S = 1.0
"""A process that waits for a device cannot be frozen: then what is there is killed all the same,
and the next round takes what was forked meanwhile."""
_SETTLE_S = 0.5
"""How long killed processes may take to give back their memory before the next round."""
_FIRST_PAUSE_S = 0.0002
_LONGEST_PAUSE_S = 0.01


def kill_all(group: Group, spared: int, timeout_s: float) -> Killed:
    """SIGKILL to every process of a group, and of those below it, but one.

    Args:
        group: of the ``freezer`` controller.
        spared: the process that may live.
        timeout_s: after this no further round is begun.

    Returns:
        What was killed, and what is still there: nothing, if it could be proved.

    Raises:
        OSError: the group cannot be frozen or a process not be signalled from here.
    """
    ends = time.monotonic() + timeout_s
    killed: dict[int, Process] = {}
    while True:
        with _frozen(group, ends):
            for process in group.processes():
                if process.pid != spared and _kill(group, process.pid):
                    killed[process.pid] = process
        _until(lambda: not group.pids() - {spared}, min(ends, time.monotonic() + _SETTLE_S))
        if not group.pids() - {spared}:
            # What waits to be reaped still counts against the container's limit of processes.
            _until(lambda: not any(map(_has_entry, killed)), time.monotonic() + _SETTLE_S)
            return Killed(tuple(killed.values()), ())
        if time.monotonic() >= ends:
            left = tuple(each for each in group.processes() if each.pid != spared)
            return Killed(tuple(killed.values()), left)


@contextlib.contextmanager
def _frozen(group: Group, ends: float) -> Iterator[None]:
    """Nothing in the group moves, or will within ``_FREEZE_S``; it is thawed on every path."""
    file, freeze, thaw = (
        (group.folder / "freezer.state", "FROZEN", "THAWED")
        if group.version == 1
        else (group.folder / "cgroup.freeze", "1", "0")
    )
    try:
        file.write_text(freeze)
        _until(lambda: _is_frozen(group), min(ends, time.monotonic() + _FREEZE_S))
        yield
    finally:
        with contextlib.suppress(FileNotFoundError):  # the container has ended
            file.write_text(thaw)


def _is_frozen(group: Group) -> bool:
    if group.version == 1:
        return (group.folder / "freezer.state").read_text().strip() == "FROZEN"
    return "frozen 1" in (group.folder / "cgroup.events").read_text().splitlines()


def _kill(group: Group, pid: int) -> bool:
    """SIGKILL to a process of the group; a pid that was given to a stranger is let be."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return False
    try:
        if not group.holds(pid):
            return False
        signal.pidfd_send_signal(handle, signal.SIGKILL)
    except ProcessLookupError:
        return False
    finally:
        os.close(handle)
    return True


def _has_entry(pid: int) -> bool:
    return os.path.exists(f"/proc/{pid}")


def _until(claim: Callable[[], bool], ends: float) -> None:
    """Waits until a claim holds, or the time is up."""
    pause = _FIRST_PAUSE_S
    while not claim() and time.monotonic() < ends:
        time.sleep(pause)
        pause = min(2 * pause, _LONGEST_PAUSE_S)
