"""How things are called in tables and lines."""

from __future__ import annotations


def short_name(task: str) -> str:
    """A task's name without its namespace."""
    return task.rpartition("/")[2]


def counted(number: int, what: str) -> str:
    """``1 node``, ``2 nodes``."""
    return f"{number} {what}{'' if number == 1 else 's'}"
