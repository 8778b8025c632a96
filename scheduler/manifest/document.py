"""A manifest as plain data that still knows where each value stood."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from scheduler.manifest.faults import ManifestFault, Mark, Place, field_text

COMMAND_LINE = "command line"
"""What stands for a file where a value came from a flag."""

MAX_DEPTH = 40
"""Levels of nesting that a manifest may have."""
MAX_VALUES = 50_000
"""Values of a manifest, aliases written out."""
MAX_CHARS = 4 * 1024 * 1024
"""Characters of all texts of a manifest, aliases written out."""


@dataclass(frozen=True)
class Document:
    """Plain data (null, bool, int, float, text, list, mapping) with marks by place."""

    file: str
    """The path as it was given, or ``command line``."""
    data: Any
    keys: Mapping[Place, Mark] = field(default_factory=dict)
    """Where the key of a mapping's entry stands."""
    values: Mapping[Place, Mark] = field(default_factory=dict)
    """Where a value begins."""
    flags: Mapping[Place, str] = field(default_factory=dict)
    """The values that came from the command line, and the flag of each."""
    elsewhere: Mapping[Place, tuple[Document, Place]] = field(default_factory=dict)
    """The values that another document gave, and where they stand there."""

    def fault(self, place: Place, message: str, nearest: str | None = None) -> ManifestFault:
        """A fault at a place; one that does not exist is located by its nearest parent.

        Args:
            place: where the fault is.
            message: what was expected, and what was found.
            nearest: the right name for the one found.
        """
        for length in range(len(place), 0, -1):
            if place[:length] in self.elsewhere:
                source, start = self.elsewhere[place[:length]]
                return source.fault((*start, *place[length:]), message, nearest)
        flag = self._flag(place)
        if flag is not None:
            return ManifestFault(COMMAND_LINE, None, flag, message, nearest)
        if self._is_of_flags(place):
            return ManifestFault(COMMAND_LINE, None, field_text(place), message, nearest)
        mark = self._mark(place)
        line = None if mark is None else mark.line
        return ManifestFault(self.file, line, field_text(place), message, nearest)

    def _flag(self, place: Place) -> str | None:
        for length in range(len(place), 0, -1):
            if place[:length] in self.flags:
                return self.flags[place[:length]]
        return None

    def _is_of_flags(self, place: Place) -> bool:
        """Whether it lacks in a mapping that flags alone made."""
        for length in range(len(place), 0, -1):
            if place[:length] in self.keys or place[:length] in self.values:
                return False
            if any(said[:length] == place[:length] for said in self.flags):
                return True
        return False

    def _mark(self, place: Place) -> Mark | None:
        for length in range(len(place), -1, -1):
            # By the key where there is one: a mapping's value begins a line further down.
            mark = self.keys.get(place[:length]) or self.values.get(place[:length])
            if mark is not None:
                return mark
        return None

    def with_flags(self, overrides: Mapping[Place, tuple[str, Any]]) -> Document:
        """This document with values from the command line laid over its own.

        Args:
            overrides: place to (flag, value); mappings on the way are made as needed.
        """
        data = self.data
        for place, (_, value) in overrides.items():
            data = _replaced(data, place, value)
        flags = {**self.flags, **{place: flag for place, (flag, _) in overrides.items()}}
        return Document(self.file, data, self.keys, self.values, flags, self.elsewhere)

    def with_values(self, source: Document, given: Mapping[Place, tuple[Place, Any]]) -> Document:
        """This document with values of another one in it.

        Args:
            source: faults of the values are located there.
            given: place here to (place there, value).
        """
        data = self.data
        for place, (_, value) in given.items():
            data = _replaced(data, place, value)
        elsewhere = {place: (source, there) for place, (there, _) in given.items()}
        return replace(self, data=data, elsewhere={**self.elsewhere, **elsewhere})


def _replaced(data: Any, place: Place, value: Any) -> Any:
    if not place:
        return value
    head, rest = place[0], place[1:]
    if isinstance(data, list) and isinstance(head, int):
        return [_replaced(each, rest, value) if n == head else each for n, each in enumerate(data)]
    mapping = dict(data) if isinstance(data, dict) else {}
    mapping[head] = _replaced(mapping.get(head), rest, value)
    return mapping
