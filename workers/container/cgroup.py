"""A container's memory cgroup, read from the host: how many OOM kills it has seen.

The counter dies with the container, so read it while it runs. Version 1 keeps it in
``memory.oom_control``, version 2 in ``memory.events``, both as a line ``oom_kill N``.
"""

from __future__ import annotations

from pathlib import Path


def belongs(pid: int, container: str) -> bool:
    """Whether a process is one of a container's: its cgroup paths carry the container's id."""
    try:
        return container in Path(f"/proc/{pid}/cgroup").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False


def counter_file(pid: int, container: str) -> Path | None:
    """Where a container's OOM kills are counted, None if it cannot be seen from here.

    Args:
        pid: the container's first process, as the engine told it.
        container: its id; a recycled pid would show another one.
    """
    try:
        cgroups = Path(f"/proc/{pid}/cgroup").read_text()
        mounts = Path("/proc/self/mountinfo").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    for kind, controllers, path in memory_cgroups(cgroups):
        if container not in path:
            continue
        for mounted_at, root, file_system, options in cgroup_mounts(mounts):
            if file_system != kind or (kind == "cgroup" and controllers not in options):
                continue
            found = Path(mounted_at + path.removeprefix(root.rstrip("/")))
            found /= "memory.oom_control" if kind == "cgroup" else "memory.events"
            if found.is_file():
                return found
    return None


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


def memory_cgroups(text: str) -> list[tuple[str, str, str]]:
    """The memory cgroups in a ``/proc/<pid>/cgroup``: file system, controllers, path.

    Version 1 comes first: where both are mounted, it has the controller.
    """
    found = []
    for line in text.splitlines():
        _, controllers, path = line.split(":", 2)
        if "memory" in controllers.split(","):
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
