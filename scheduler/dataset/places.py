"""Where a task's names, codes and counts stand, and what stands there.

A place is a file of the task's folder, or ``fixture:`` or ``verify:`` and a path. A path goes
down by field names and list numbers; a list is gone through whole; ``[role=bot]`` and
``[slug!=x]`` keep some of a list's rows; ``.keys`` and ``.values`` open a mapping; ``#`` counts.
``fixture:entries`` is the directory with its ranges written out. ``verify:`` begins with the name
of a constant of ``tests/verify.py``, which is read and never run.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from workers.contract.task import Task

VERIFIER = "tests/verify.py"

Scalar = str | int | float | bool | None

_STEP = re.compile(r"\.?([A-Za-z_0-9]+)|\[(\w+)(!?=)([^\]]*)\]|(#)$")
_GROUPED = re.compile(r"(?<=\d)[,_](?=\d)")


class PlaceError(ValueError):
    """A place that is not there; the message says what is."""


class TaskTexts:
    """A task's folder as places.

    Args:
        folder: the task's folder.
        task: what was read of it.
    """

    def __init__(self, folder: Path, task: Task) -> None:
        self._folder = folder
        self._fixture: dict[str, Any] = {}
        if task.fixture is not None:
            self._fixture = task.fixture.model_dump(mode="json")
            entries = [entry.model_dump(mode="json") for entry in task.fixture.entries]
            self._fixture["entries"] = entries

    def values(self, place: str) -> list[Scalar]:
        """The values at a ``fixture:`` or ``verify:`` place.

        Raises:
            PlaceError: there is nothing of that name.
        """
        kind, _, path = place.partition(":")
        if kind == "fixture":
            return select(self._fixture, path)
        if kind == "verify":
            return select(constants(self._read(VERIFIER)), path)
        raise PlaceError(f"{place!r}: expected fixture:… or verify:…")

    def text(self, place: str) -> str:
        """The text at a place: a file's, or its values one a line.

        Raises:
            PlaceError: there is nothing of that name.
        """
        if place.startswith(("fixture:", "verify:")):
            return "\n".join(written(value) for value in self.values(place))
        return self._read(place)

    def _read(self, name: str) -> str:
        path = self._folder / name
        outside = Path(name).is_absolute() or ".." in Path(name).parts
        if outside or not path.is_file():
            raise PlaceError(f"the task has no file {name!r}")
        return path.read_text("utf-8", errors="replace")


def written(value: Scalar) -> str:
    """A value as people write it."""
    if isinstance(value, bool) or value is None:
        return str(value).lower()
    return str(value)


def stands_in(value: Scalar, text: str) -> bool:
    """Whether a value stands in a text; a number stands alone, separators aside."""
    wanted = written(value)
    if not re.fullmatch(r"\d+", wanted):
        return wanted in text
    return re.search(rf"(?<!\d){wanted}(?!\d)", _GROUPED.sub("", text)) is not None


def constants(source: str) -> dict[str, Any]:
    """The module's top-level names whose values are written out.

    Raises:
        PlaceError: it is not Python.
    """
    try:
        tree = ast.parse(source)
    except SyntaxError as error:
        raise PlaceError(f"{VERIFIER} line {error.lineno}: not Python: {error.msg}") from error
    found: dict[str, Any] = {}
    for node in tree.body:
        if not isinstance(node, ast.Assign | ast.AnnAssign) or node.value is None:
            continue
        target = node.targets[0] if isinstance(node, ast.Assign) else node.target
        if isinstance(target, ast.Name):
            try:
                found[target.id] = ast.literal_eval(node.value)
            except ValueError:
                continue  # Computed, a call, a name: not written out.
    return found


def select(data: Any, path: str) -> list[Scalar]:
    """The values at a path of plain data.

    Raises:
        PlaceError: a name on the path is not there, or it ends at a mapping.
    """
    found = [data]
    position = 0
    while position < len(path):
        step = _STEP.match(path, position)
        if step is None:
            raise PlaceError(f"{path!r}: not a path from character {position + 1} on")
        position = step.end()
        name, field, sign, value, count = step.groups()
        if count is not None:
            return [len(list(_flat(found)))]
        if name is not None:
            found = [each for one in found for each in _named(one, name, path)]
        else:
            rows = [row for row in _flat(found) if isinstance(row, dict)]
            found = [row for row in rows if (written(row.get(field)) == value) == (sign == "=")]
    values = list(_flat(found))
    if any(isinstance(value, dict) for value in values):
        raise PlaceError(f"{path!r} ends at a mapping: add .keys, .values or a field")
    return values


def _named(data: Any, name: str, path: str) -> Iterator[Any]:
    """What a name gives: a mapping's field, a list's item by number, or each item's field."""
    if isinstance(data, dict):
        if name in data:
            yield data[name]
        elif name in ("keys", "values"):
            yield from (data if name == "keys" else data.values())
        else:
            raise PlaceError(f"{path!r}: no {name!r}; there are {', '.join(map(str, data))}")
    elif isinstance(data, list | tuple) and name.isdecimal():
        if int(name) >= len(data):
            raise PlaceError(f"{path!r}: no item {name} among {len(data)}")
        yield data[int(name)]
    elif isinstance(data, list | tuple):
        for item in data:
            yield from _named(item, name, path)
    else:
        raise PlaceError(f"{path!r}: nothing has a {name!r} there")


def _flat(found: list[Any]) -> Iterator[Any]:
    for each in found:
        if isinstance(each, list | tuple):
            yield from _flat(list(each))
        else:
            yield each
