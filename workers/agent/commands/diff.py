"""Applies a unified diff to a text: verbatim, at the stated positions, or not at all."""

from __future__ import annotations

import re
from dataclasses import dataclass

_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_NO_NEWLINE = "\\ No newline at end of file"


class PatchFormatError(Exception):
    """The text is no unified diff of one file."""


class PatchMismatch(Exception):
    """The diff does not fit the text that it should change."""


@dataclass(frozen=True)
class _Hunk:
    start: int
    """Index of the first old line."""
    old: tuple[str, ...]
    new: tuple[str, ...]
    """Lines with their line ends."""


def apply(text: str, patch: str) -> str:
    """The text after a diff.

    Raises:
        PatchFormatError: the diff cannot be read.
        PatchMismatch: a line that it names is not where it says.
    """
    lines = _newline_split(text)
    result: list[str] = []
    position = 0
    for hunk in _hunks(patch):
        if hunk.start < position:
            raise PatchFormatError("the hunks are not in order")
        end = hunk.start + len(hunk.old)
        if tuple(lines[hunk.start : end]) != hunk.old:
            raise PatchMismatch(f"the text differs from the diff at line {hunk.start + 1}")
        result += lines[position : hunk.start]
        result += hunk.new
        position = end
    return "".join(result + lines[position:])


def _newline_split(text: str) -> list[str]:
    """Lines by line feeds alone, each with its own."""
    return [line for line in re.split(r"(?<=\n)", text) if line]


def _hunks(patch: str) -> list[_Hunk]:
    lines = patch.split("\n")
    if lines and not lines[-1]:
        lines.pop()
    hunks: list[_Hunk] = []
    index = 0
    while index < len(lines):
        head = _HUNK.match(lines[index])
        index += 1
        if head is None:
            if hunks or not _is_preamble(lines[index - 1]):
                raise PatchFormatError(f"not a line of a unified diff: {lines[index - 1][:80]!r}")
            continue
        hunk, index = _read_hunk(head, lines, index)
        hunks.append(hunk)
    if not hunks:
        raise PatchFormatError("no hunk (@@ -a,b +c,d @@) in the diff")
    return hunks


def _is_preamble(line: str) -> bool:
    return not line or line.startswith(("--- ", "+++ ", "diff ", "index "))


def _read_hunk(head: re.Match[str], lines: list[str], index: int) -> tuple[_Hunk, int]:
    old_start, old_count = int(head.group(1)), int(head.group(2) or 1)
    new_count = int(head.group(4) or 1)
    old: list[str] = []
    new: list[str] = []
    while index < len(lines) and (len(old) < old_count or len(new) < new_count):
        line = lines[index]
        index += 1
        mark, text = line[:1] or " ", line[1:] + "\n"
        if mark not in " -+":
            raise PatchFormatError(f"not a line of a hunk: {line[:80]!r}")
        old += [text] * (mark in " -")
        new += [text] * (mark in " +")
        if index < len(lines) and lines[index] == _NO_NEWLINE:
            index += 1
            _strip_newline(old, mark in " -")
            _strip_newline(new, mark in " +")
    if (len(old), len(new)) != (old_count, new_count):
        raise PatchFormatError("a hunk has other counts of lines than its head says")
    # A hunk without old lines stands after the line that it names.
    start = old_start if old_count == 0 else old_start - 1
    return _Hunk(max(start, 0), tuple(old), tuple(new)), index


def _strip_newline(lines: list[str], applies: bool) -> None:
    if applies and lines:
        lines[-1] = lines[-1][:-1]
