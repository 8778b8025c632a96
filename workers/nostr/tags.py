"""What tags say: values by name, hex ids, and the place of a message in its thread."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

Tags = tuple[tuple[str, ...], ...]
"""The tags of an event, exactly as signed."""

_HEX64 = re.compile(r"[0-9a-f]{64}")
_HEX128 = re.compile(r"[0-9a-f]{128}")


def is_hex64(text: str) -> bool:
    """Whether a text is exactly 64 lower-case hex digits: an id or a public key."""
    return _HEX64.fullmatch(text) is not None


def is_hex128(text: str) -> bool:
    """Whether a text is exactly 128 lower-case hex digits: a signature."""
    return _HEX128.fullmatch(text) is not None


def values(tags: Sequence[Sequence[str]], name: str) -> Iterator[str]:
    """The second element of every tag of that name that has one, in order."""
    return (tag[1] for tag in tags if len(tag) >= 2 and tag[0] == name)


def first(tags: Sequence[Sequence[str]], name: str) -> str | None:
    """The value of the first tag of that name, or None."""
    return next(values(tags, name), None)


def mentioned(tags: Sequence[Sequence[str]]) -> frozenset[str]:
    """The keys that ``#p`` finds: ``p`` values, lower-cased, of 64 hex digits."""
    return frozenset(value.lower() for value in values(tags, "p") if is_hex64(value.lower()))


@dataclass(frozen=True)
class Thread:
    """Where a reply stands: its thread's first message and the message it answers."""

    root: str
    parent: str


def thread_of(tags: Sequence[Sequence[str]]) -> Thread | None:
    """The thread that a message replies into, or None for a top-level one.

    Only ``e`` tags marked ``root`` or ``reply`` count (NIP-10), the last of each; a reply
    without a root answers the root itself; a root without a reply is top-level.
    """
    marked: dict[str, str] = {}
    for tag in tags:
        if len(tag) >= 4 and tag[0] == "e" and tag[3] in ("root", "reply") and is_hex64(tag[1]):
            marked[tag[3]] = tag[1]
    parent = marked.get("reply")
    return None if parent is None else Thread(marked.get("root", parent), parent)


def reply_tags(parent: str, parent_tags: Sequence[Sequence[str]]) -> Tags:
    """The ``e`` tags of a reply to an event, given that event's id and tags (NIP-10)."""
    thread = thread_of(parent_tags)
    if thread is None:
        return (("e", parent, "", "reply"),)
    return (("e", thread.root, "", "root"), ("e", parent, "", "reply"))
