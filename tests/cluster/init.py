"""The first process of a machine: its name, its own /tmp, /run and Docker's folder.

It runs as number 1 of fresh namespaces, takes the machine's name and a folder for its disk, and
collects what dies there. When it ends, the kernel ends all that runs on the machine.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from pathlib import Path

UP = "up"
"""The file of the disk that says that everything is mounted."""
OWN = {"tmp": "/tmp", "docker": "/var/lib/docker"}
IN_MEMORY = ("/run", "/dev/shm")
PROGRAMS = {str(Path(__file__).resolve().parents[2]), sys.prefix, sys.base_prefix}
"""What machines of one kernel share: the checkout, and the Python that runs it."""


def main(name: str, disk: Path) -> None:
    """Sets the machine up, and waits for ever."""
    os.chdir("/")
    socket.sethostname(name)
    _mount("-t", "proc", "proc", "/proc")
    for folder, place in OWN.items():
        Path(place).mkdir(parents=True, exist_ok=True)
        if place != OWN["tmp"]:
            _mount("--bind", str(disk / folder), place)
    for place in IN_MEMORY:
        _mount("-t", "tmpfs", "tmpfs", place)
    # A checkout may lie where the machine has a folder of its own.
    for folder in sorted(PROGRAMS):
        if Path(folder).is_relative_to(OWN["tmp"]):
            place = disk / "tmp" / Path(folder).relative_to(OWN["tmp"])
            place.mkdir(parents=True, exist_ok=True)
            _mount("--bind", folder, str(place))
    # Last: the disk itself lies below the /tmp of whoever starts the machine.
    _mount("--rbind", str(disk / "tmp"), OWN["tmp"])
    Path(OWN["tmp"], UP).touch()
    while True:
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            time.sleep(0.1)


def _mount(*words: str) -> None:
    subprocess.run(["mount", *words], check=True, timeout=20.0)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
