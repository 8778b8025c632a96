"""What a ``buzz`` command printed, as data; anything else is nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from workers.model.play import Output


def rows_of(output: Output) -> Iterator[dict[str, Any]]:
    """The rows of a command that prints a JSON array."""
    told = _parsed(output)
    if isinstance(told, list):
        yield from (row for row in told if isinstance(row, dict))


def object_of(output: Output) -> dict[str, Any]:
    """What a command that prints a JSON object printed."""
    told = _parsed(output)
    return told if isinstance(told, dict) else {}


def _parsed(output: Output) -> object:
    try:
        return json.loads(output.stdout)
    except ValueError:
        return None
