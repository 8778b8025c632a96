"""Whom a message mentions: explicit keys, ``nostr:npub…`` references, and ``@`` names.

Pure rules; ``messages`` fetches members and profiles. What stands in code notifies nobody.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

MAX_MENTIONS = 50
_FENCE = re.compile(r"^[ \t]*```")
_SPAN = re.compile(r"(`+)(?!`)[^\n]*?(?<!`)\1(?!`)")
_NPUB = re.compile(r"nostr:(npub1[02-9ac-hj-np-z]+)")
_TOKEN = re.compile(r"[A-Za-z0-9._-]+")
_SPACE = " \t\n\r\v\f"
_BOUNDARY = _SPACE + ",;.!?:)]}"


@dataclass(frozen=True)
class Unresolved:
    """An ``@`` name that is nobody's, or several members'."""

    name: str
    candidates: tuple[str, ...] = ()


def blank_code(text: str) -> str:
    """The text with fenced blocks and inline code spans turned into spaces, line ends kept."""
    lines = []
    fenced = False
    for line in text.splitlines(keepends=True):
        fence = _FENCE.match(line) is not None
        if fence or fenced:
            lines.append(re.sub(r"[^\r\n]", " ", line))
            fenced = fenced != fence
        else:
            lines.append(_SPAN.sub(lambda span: " " * len(span.group()), line))
    return "".join(lines)


def npub_references(text: str) -> list[str]:
    """The npubs of all ``nostr:`` references of a text, in order."""
    return _NPUB.findall(text)


def name_table(profiles: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    """Keys by lower-cased name, from pairs of key and name."""
    table: dict[str, list[str]] = {}
    for key, name in profiles:
        keys = table.setdefault(name.lower(), [])
        if name and key not in keys:
            keys.append(key)
    table.pop("", None)
    return table


def named(text: str, table: Mapping[str, Sequence[str]]) -> tuple[list[str], list[Unresolved]]:
    """The keys that a text's ``@`` names notify, and the names that could not be resolved.

    A name counts where ``@`` begins the text or follows ASCII white space. Known names are
    tried first, the longest one first, and must end at a boundary.
    """
    keys: list[str] = []
    unresolved: list[Unresolved] = []
    names = sorted(table, key=len, reverse=True)
    for place in (found.start() for found in re.finditer("@", text)):
        if place and text[place - 1] not in _SPACE:
            continue
        name = _name_at(text, place + 1, names)
        if not name:
            continue
        holders = tuple(table.get(name.lower(), ()))
        if len(holders) == 1:
            keys.append(holders[0])
        else:
            unresolved.append(Unresolved(name, holders))
    return keys, unresolved


def _name_at(text: str, start: int, names: Sequence[str]) -> str:
    """The known name that begins here, else the run of name characters; may be empty."""
    for name in names:
        end = start + len(name)
        if text[start:end].lower() == name and (end == len(text) or text[end] in _BOUNDARY):
            return text[start:end]
    token = _TOKEN.match(text, start)
    return token.group() if token is not None else ""


def merge(*groups: Iterable[str]) -> list[str]:
    """All keys in the order of their first appearance."""
    return list(dict.fromkeys(key for group in groups for key in group))
