"""A container's cgroups, read from the host: where they are, who is in them, what they counted.

The OOM counter dies with the container, so read it while it runs. Version 1 keeps it in
``memory.oom_control``, version 2 in ``memory.events``, both as a line ``oom_kill N``.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from workers.container.interface import Process

_COMMAND_BYTES = 200
_DEAD = "ZX"
_BATCH_BYTES = 1024 * 1024


class Group(NamedTuple):
    """The cgroup of one container in one hierarchy."""

    version: int
    path: str
    """As ``/proc/<pid>/cgroup`` tells it."""
    folder: Path
    """Where it can be read from here."""

    def holds(self, pid: int) -> bool:
        """Whether a process is in this group or in one below it."""
        try:
            text = Path(f"/proc/{pid}/cgroup").read_text()
        except (FileNotFoundError, ProcessLookupError):
            return False
        paths = [line.split(":", 2)[2] for line in text.splitlines()]
        return any(path == self.path or path.startswith(f"{self.path}/") for path in paths)

    def pids(self) -> set[int]:
        """Every process in the group and in those below it; empty once it is gone."""
        found: set[int] = set()
        for folder, _, _ in os.walk(self.folder):
            try:
                text = Path(folder, "cgroup.procs").read_text()
            except OSError:  # gone meanwhile, or a threaded group, whose processes are listed above
                continue
            found.update(int(line) for line in text.split())
        return found

    def processes(self) -> list[Process]:
        """What runs in the group and in those below it, by pid."""
        found = (_process(pid) for pid in sorted(self.pids()))
        return [process for process in found if process is not None]


def group_of(pid: int, container: str, controller: str) -> Group | None:
    """A container's cgroup with a controller, None if it cannot be seen from here.

    Args:
        pid: a process of the container, as the engine told it.
        container: its id; a recycled pid would show another one.
        controller: as version 1 names it; version 2 has one group for all of them.
    """
    try:
        cgroups = Path(f"/proc/{pid}/cgroup").read_text()
        mounts = Path("/proc/self/mountinfo").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    for kind, controllers, path in cgroups_with(cgroups, controller):
        top = _top(path, container)
        if not top:
            continue
        for mounted_at, root, file_system, options in cgroup_mounts(mounts):
            if file_system != kind or (kind == "cgroup" and controllers not in options):
                continue
            folder = Path(mounted_at + top.removeprefix(root.rstrip("/")))
            if folder.is_dir():
                return Group(1 if kind == "cgroup" else 2, top, folder)
    return None


def _top(path: str, container: str) -> str:
    """The container's own group: it may have made groups below, and moved into them."""
    parts = path.split("/")
    for place, part in enumerate(parts):
        if container in part:
            return "/".join(parts[: place + 1])
    return ""


def belongs(pid: int, container: str) -> bool:
    """Whether a process is one of a container's: its cgroup paths carry the container's id."""
    try:
        return container in Path(f"/proc/{pid}/cgroup").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False


def is_first(pid: int) -> bool:
    """Whether a process is number 1 of a PID namespace of its own."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return False
    inner = next((line.split()[1:] for line in lines if line.startswith("NSpid:")), [])
    return len(inner) > 1 and inner[-1] == "1"


def counter_file(pid: int, container: str) -> Path | None:
    """Where a container's OOM kills are counted, None if it cannot be seen from here.

    Args:
        pid: the container's first process, as the engine told it.
        container: its id.
    """
    group = group_of(pid, container, "memory")
    if group is None:
        return None
    found = group.folder / ("memory.oom_control" if group.version == 1 else "memory.events")
    return found if found.is_file() else None


def oom_kills(file: Path) -> int | None:
    """The counter's figure, None once the cgroup is gone."""
    try:
        lines = file.read_text().splitlines()
    except OSError:  # ENOENT, or ENODEV when it goes while it is read
        return None
    for line in lines:
        name, _, figure = line.partition(" ")
        if name == "oom_kill":
            return int(figure)
    return None


def limit_reached(file: Path) -> bool | None:
    """Whether the group's own memory limit was ever reached, None once it is gone.

    Version 1 keeps the highest usage, which at the limit is short of it by less than a batch of
    pages; its counters of failures stay at zero on some kernels. Version 2 counts in ``oom``
    what was about to fail at this limit or at one below, never at one above.

    Args:
        file: the counter of its OOM kills.
    """
    try:
        if file.name == "memory.oom_control":
            limit = int(file.with_name("memory.limit_in_bytes").read_text())
            highest = int(file.with_name("memory.max_usage_in_bytes").read_text())
            return highest > limit - _BATCH_BYTES
        lines = file.read_text().splitlines()
    except OSError:
        return None
    return any(line.startswith("oom ") and line != "oom 0" for line in lines)


def cgroups_with(text: str, controller: str) -> list[tuple[str, str, str]]:
    """The cgroups with a controller in a ``/proc/<pid>/cgroup``: file system, controllers, path.

    Version 1 comes first: where both are mounted, it has the controller.
    """
    found = []
    for line in text.splitlines():
        _, controllers, path = line.split(":", 2)
        if controller in controllers.split(","):
            found.append(("cgroup", controllers, path))
        elif controllers == "":
            found.append(("cgroup2", "", path))
    return sorted(found)


def cgroup_mounts(text: str) -> list[tuple[str, str, str, str]]:
    """The cgroup mounts in a mountinfo (proc(5)): mount point, root, file system, options."""
    found = []
    for line in text.splitlines():
        before, _, after = line.partition(" - ")
        fields, kind = before.split(), after.split()
        if kind and kind[0] in ("cgroup", "cgroup2"):
            found.append((fields[4], fields[3], kind[0], kind[2]))
    return found


def _process(pid: int) -> Process | None:
    """What ``/proc`` tells of a process, None if it is gone or only its entry is left."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(errors="replace")
        with open(f"/proc/{pid}/cmdline", "rb") as stream:
            words = stream.read(_COMMAND_BYTES)
    except (FileNotFoundError, ProcessLookupError):
        return None
    before, _, after = stat.rpartition(")")
    state, parent = after.split()[:2]
    if state in _DEAD:
        return None
    command = " ".join(_words(words)) or f"[{before.partition('(')[2]}]"
    return Process(pid, int(parent), command)


def _words(command_line: bytes) -> Iterator[str]:
    for word in command_line.split(b"\0"):
        if word:
            yield word.decode("utf-8", "replace")
