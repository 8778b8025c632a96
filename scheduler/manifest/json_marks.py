"""JSON text to a document with marks: strict JSON, each key once, no NaN."""

from __future__ import annotations

import bisect
import json
import math
import re
from typing import Any, NoReturn

from scheduler.manifest.document import MAX_DEPTH, MAX_VALUES, Document
from scheduler.manifest.faults import ManifestError, ManifestFault, Mark, Place, field_text

_SPACE = re.compile(r"[ \t\n\r]*")


def read_json(text: str, file: str) -> Document:
    """Reads one JSON document.

    Raises:
        ManifestError: not JSON, a key stands twice, or a number is not finite.
    """
    reader = _Reader(text, file)
    data, end = reader.value(reader.space(0), ())
    end = reader.space(end)
    if end != len(text):
        reader.stop(end, (), "not JSON: text after the document's end")
    return Document(file, data, reader.keys, reader.values)


class _Reader:
    """Containers by hand, for the marks; scalars by the standard decoder."""

    def __init__(self, text: str, file: str) -> None:
        self.keys: dict[Place, Mark] = {}
        self.values: dict[Place, Mark] = {}
        self._text = text
        self._file = file
        self._count = 0
        self._breaks = [match.start() for match in re.finditer("\n", text)]
        self._decoder = json.JSONDecoder(parse_constant=_refuse_constant)

    def stop(self, position: int, place: Place, message: str) -> NoReturn:
        """Ends the reading with a fault at a position of the text."""
        line = self._mark(position).line
        raise ManifestError([ManifestFault(self._file, line, field_text(place), message)])

    def space(self, position: int) -> int:
        """The position of the next character that is not white space."""
        match = _SPACE.match(self._text, position)
        return position if match is None else match.end()

    def value(self, position: int, place: Place) -> tuple[Any, int]:
        """The value at a position, and where it ends."""
        self.values[place] = self._mark(position)
        self._count += 1
        if len(place) > MAX_DEPTH:
            self.stop(position, (), f"a manifest may not be more than {MAX_DEPTH} levels deep")
        if self._count > MAX_VALUES:
            self.stop(position, (), f"a manifest may not be more than {MAX_VALUES} values")
        opening = self._text[position : position + 1]
        if opening == "{":
            return self._mapping(position, place)
        if opening == "[":
            return self._list(position, place)
        return self._scalar(position, place)

    def _mapping(self, start: int, place: Place) -> tuple[dict[str, Any], int]:
        data: dict[str, Any] = {}
        position = self.space(start + 1)
        if self._text[position : position + 1] == "}":
            return data, position + 1
        while True:
            if self._text[position : position + 1] != '"':
                self.stop(position, place, "not JSON: expected a key in double quotes")
            key, end = self._scalar(position, place)
            here = (*place, key)
            if key in data:
                first = self.keys[here].line
                self.stop(position, here, f"this key stands twice; the first is on line {first}")
            self.keys[here] = self._mark(position)
            position = self._expect(end, place, ":")
            data[key], end = self.value(self.space(position), here)
            position = self.space(end)
            if self._text[position : position + 1] == "}":
                return data, position + 1
            position = self.space(self._expect(position, place, ","))

    def _list(self, start: int, place: Place) -> tuple[list[Any], int]:
        data: list[Any] = []
        position = self.space(start + 1)
        if self._text[position : position + 1] == "]":
            return data, position + 1
        while True:
            child, end = self.value(position, (*place, len(data)))
            data.append(child)
            position = self.space(end)
            if self._text[position : position + 1] == "]":
                return data, position + 1
            position = self.space(self._expect(position, place, ","))

    def _expect(self, position: int, place: Place, sign: str) -> int:
        position = self.space(position)
        if self._text[position : position + 1] != sign:
            self.stop(position, place, f"not JSON: expected {sign!r}")
        return position + 1

    def _scalar(self, position: int, place: Place) -> tuple[Any, int]:
        try:
            value, end = self._decoder.raw_decode(self._text, position)
        except json.JSONDecodeError as error:
            self.stop(error.pos, place, f"not JSON: {error.msg}")
        except ValueError:
            self.stop(position, place, "a number that cannot be read, or is not finite")
        if isinstance(value, float) and not math.isfinite(value):
            self.stop(position, place, "a number must be finite")
        if isinstance(value, str):
            try:
                value.encode()
            except UnicodeEncodeError:
                self.stop(position, place, "text with half of a surrogate pair")
        return value, end

    def _mark(self, position: int) -> Mark:
        row = bisect.bisect_left(self._breaks, position)
        start = self._breaks[row - 1] + 1 if row else 0
        return Mark(row + 1, position - start + 1)


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(name)
