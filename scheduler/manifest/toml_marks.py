"""TOML text to a document with marks.

The standard reader keeps no positions, so keys are found again in the text, line by line:
good for the tables and plain keys that a ``task.toml`` has; any other place is located by
its table.
"""

from __future__ import annotations

import datetime
import math
import re
import tomllib
from typing import Any

from scheduler.manifest.document import Document
from scheduler.manifest.faults import ManifestError, ManifestFault, Mark, Place

_TABLE = re.compile(r"\s*(\[\[?)\s*([A-Za-z0-9_.-]+)\s*\]")
_KEY = re.compile(r"\s*([A-Za-z0-9_.-]+)\s*=")
_WHERE = re.compile(r"\s*\(at (?:line (\d+), column \d+|end of document)\)")


def read_toml(text: str, file: str) -> Document:
    """Reads a TOML document.

    Raises:
        ManifestError: not TOML, or a value that is not plain data (dates, NaN).
    """
    try:
        data = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError, ValueError) as error:
        raise ManifestError([_syntax_fault(error, text, file)]) from error
    marks = _marks(text)
    document = Document(file, data, marks, marks)
    faults = [document.fault(place, message) for place, message in _odd_values(data, ())]
    if faults:
        raise ManifestError(faults)
    return document


def _syntax_fault(error: Exception, text: str, file: str) -> ManifestFault:
    if isinstance(error, RecursionError):
        return ManifestFault(file, None, "", "not TOML: nested too deep")
    match = _WHERE.search(str(error))
    line = text.count("\n") + 1 if match is None or not match[1] else int(match[1])
    return ManifestFault(file, line, "", f"not TOML: {_WHERE.sub('', str(error))}")


def _marks(text: str) -> dict[Place, Mark]:
    marks: dict[Place, Mark] = {(): Mark(1, 1)}
    table: Place = ()
    counts: dict[Place, int] = {}
    for number, line in enumerate(text.split("\n"), start=1):
        if match := _TABLE.match(line):
            table = tuple(match[2].split("."))
            if match[1] == "[[":
                index = counts[table] = counts.get(table, -1) + 1
                table = (*table, index)
            marks.setdefault(table, Mark(number, 1))
        elif match := _KEY.match(line):
            marks.setdefault((*table, *match[1].split(".")), Mark(number, match.start(1) + 1))
    return marks


def _odd_values(data: Any, place: Place) -> list[tuple[Place, str]]:
    if isinstance(data, dict):
        children: list[tuple[str | int, Any]] = list(data.items())
    elif isinstance(data, list):
        children = list(enumerate(data))
    elif isinstance(data, datetime.date | datetime.time):
        return [(place, "a date is not plain data: put it in quotes")]
    elif isinstance(data, float) and not math.isfinite(data):
        return [(place, "a number must be finite")]
    else:
        return []
    return [odd for key, child in children for odd in _odd_values(child, (*place, key))]
