"""What is wrong with a manifest, where, and what was probably meant."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

Place = tuple[str | int, ...]
"""Where a value stands: keys and list indexes from the top of its document."""

_PLAIN_KEY = re.compile(r"[A-Za-z0-9_-]+")


class Mark(NamedTuple):
    """A position in a file; both count from 1."""

    line: int
    column: int


@dataclass(frozen=True)
class ManifestFault:
    """One thing that is wrong."""

    file: str
    """The path as it was given, or ``command line``."""
    line: int | None
    """Null where there is no line to name: the command line, a missing file."""
    field: str
    """For example ``roster[0].generation.temperature``; empty: the whole document."""
    message: str
    """What was expected, and what was found."""
    nearest: str | None = None
    """The right name that is nearest to the one found."""

    def __str__(self) -> str:
        """``path:line: field: message (did you mean 'x'?)``."""
        place = self.file if self.line is None else f"{self.file}:{self.line}"
        field = f"{self.field}: " if self.field else ""
        hint = "" if self.nearest is None else f" (did you mean {self.nearest!r}?)"
        return f"{place}: {field}{self.message}{hint}"


class ManifestError(ValueError):
    """Manifests that cannot be used; one line of text a fault."""

    def __init__(self, faults: Iterable[ManifestFault]) -> None:
        self.faults = tuple(dict.fromkeys(faults))
        super().__init__("\n".join(str(fault) for fault in self.faults))


class FaultList:
    """Gathers faults of several files, so that all are told at once."""

    def __init__(self) -> None:
        self.faults: list[ManifestFault] = []

    def add(self, fault: ManifestFault) -> None:
        """Keeps one more fault."""
        self.faults.append(fault)

    @contextmanager
    def gathering(self) -> Iterator[None]:
        """Keeps the faults of a ``ManifestError`` raised inside, and goes on."""
        try:
            yield
        except ManifestError as error:
            self.faults.extend(error.faults)

    def settle(self) -> None:
        """Ends the gathering.

        Raises:
            ManifestError: there were faults.
        """
        if self.faults:
            raise ManifestError(self.faults)


def field_text(place: Place) -> str:
    """A place as people write one: ``prices["gpt-5.6"].input``, ``roster[0].id``."""
    text = ""
    for part in place:
        if isinstance(part, int):
            text += f"[{part}]"
        elif _PLAIN_KEY.fullmatch(part):
            text += f".{part}" if text else part
        else:
            text += f'["{part}"]'
    return text


def nearest_name(name: str, candidates: Iterable[str]) -> str | None:
    """The candidate that ``name`` is most likely a slip for, if any is near."""
    folded: dict[str, str] = {}
    for candidate in candidates:
        folded.setdefault(_fold(candidate), candidate)
    wanted = _fold(name)
    matches = difflib.get_close_matches(wanted, folded, n=1, cutoff=0.6)
    if matches:
        return folded[matches[0]]
    inside = [key for key in folded if len(key) >= 4 and len(wanted) >= 4]
    inside = [key for key in inside if key in wanted or wanted in key]
    return folded[inside[0]] if len(inside) == 1 else None


def _fold(name: str) -> str:
    return re.sub(r"[^a-z0-9.]+", "_", name.lower())
