"""How tasks are called where space is short."""

from __future__ import annotations


def short_name(task: str) -> str:
    """A task's name without its namespace."""
    return task.rpartition("/")[2]
