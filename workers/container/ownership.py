"""Who owns a container: the labels, the proof that they are its own, and that an owner is gone.

Labels are copied: an image hands them to every container made of it, and people copy them from
one command to the next. So a thing carries a proof too, a digest over its name and its labels:
on a thing of another name a copy proves nothing. (It is no signature. Who would forge one may
ask Docker to remove the thing itself.)
"""

from __future__ import annotations

import functools
import hashlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

NODE = "apiary.node"
SWEEP = "apiary.sweep"
ATTEMPT = "apiary.attempt"
TRY = "apiary.try"
EPOCH = "apiary.epoch"
EXPIRES = "apiary.expires"
"""Unix seconds after which nobody needs the thing."""
OWNER = "apiary.owner"
"""``pid:start time:PID namespace:boot`` of the process that made the thing."""
ENGINE = "apiary.engine"
"""Which of the owner's engines made it."""
IMAGE = "apiary.image"
"""The tag that an image was built for."""
PROOF = "apiary.proof"
"""The digest that ties labels to the name of the thing that carries them."""

_PROVED = (NODE, OWNER, ENGINE, EXPIRES, SWEEP, EPOCH, IMAGE)


def with_proof(name: str, labels: Mapping[str, str]) -> dict[str, str]:
    """The labels of a thing of this name, with their proof.

    Each label that is proved is set, if only to nothing: else an image could add it.

    Args:
        name: a container's, volume's or network's name, an image's tag.
        labels: all labels that it is given.
    """
    return {**dict.fromkeys(_PROVED, ""), **labels, PROOF: _digest(name, labels)}


def proves(name: str, labels: Mapping[str, str]) -> bool:
    """Whether the labels were given to the thing of this name by us."""
    return PROOF in labels and labels[PROOF] == _digest(name, labels)


def listed_name(container: Mapping[str, Any]) -> str:
    """The name of a container in the engine's list; empty if it has none, or several.

    Links of other containers to it show as further names, with a second slash.
    """
    names = [name for name in container["Names"] or () if name.count("/") == 1]
    return str(names[0]).removeprefix("/") if len(names) == 1 else ""


def _digest(name: str, labels: Mapping[str, str]) -> str:
    words = [name, *(labels.get(label, "") for label in _PROVED)]
    return hashlib.sha256("\0".join(words).encode("utf-8", "replace")).hexdigest()[:32]


def start_time(pid: int) -> str | None:
    """When a process started, in clock ticks since boot (proc(5), stat field 22).

    Gives None if there is no such process, or only its entry is left: where the first process
    does not wait for orphans, as in many containers, that entry stays for ever.
    """
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The second field is the program's name in parentheses and may hold anything.
    state, *fields = stat.rpartition(")")[2].split()
    threads, started = fields[16], fields[18]
    # A main thread may end before the others: then the process lives although its entry is dead.
    return None if state in "ZX" and int(threads) <= 1 else started


def pid_namespace() -> str:
    """The inode of this process's PID namespace."""
    return str(os.stat("/proc/self/ns/pid").st_ino)


@functools.cache
def boot() -> str:
    """The id of this machine's present boot; empty where the system does not tell it."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def this_process() -> str:
    """The owner label of this process."""
    return f"{os.getpid()}:{start_time(os.getpid())}:{pid_namespace()}:{boot()}"


def is_gone(owner: str) -> bool:
    """Whether the process that an owner label names is proved to be gone.

    A label from another PID namespace, or a malformed one, proves nothing.
    """
    return _lives(owner) is False


def is_alive(owner: str) -> bool:
    """Whether the process that an owner label names is proved to live."""
    return _lives(owner) is True


def is_of_this_machine(owner: str) -> bool:
    """Whether an owner label is proved to name a process of this machine, under whatever name."""
    return bool(boot()) and owner.split(":")[3:] == [boot()]


def _lives(owner: str) -> bool | None:
    """None: it cannot be told from here."""
    pid, *rest = owner.split(":")
    if len(rest) not in (2, 3) or not (pid.isascii() and pid.isdigit()):
        return None
    started, namespace, *booted = rest
    if namespace != pid_namespace():
        return None
    return start_time(int(pid)) == started and booted in ([], [boot()])
