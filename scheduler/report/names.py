"""How things are called in tables and lines."""

from __future__ import annotations

import re

_START = re.compile(r".*-([0-9]{8}T[0-9]{6}Z)")


def short_name(task: str) -> str:
    """A task's name without its namespace."""
    return task.rpartition("/")[2]


def counted(number: int, what: str) -> str:
    """``1 node``, ``2 nodes``."""
    return f"{number} {what}{'' if number == 1 else 's'}"


def place_of(store_url: str, key: str) -> str:
    """Where an object is: a path for a ``file://`` store, else a URL without its options."""
    return f"{store_url.partition('?')[0].removeprefix('file://').rstrip('/')}/{key}"


def sweep_start(sweep: str) -> tuple[str, str]:
    """Orders sweeps by the UTC start that their ids end with."""
    match = _START.fullmatch(sweep)
    return (match[1] if match else "", sweep)
