"""Which keys a store may hold: the same rule for every store.

The rule is what both a file system and S3 can carry: relative, ``/`` between parts, no part
empty, ``.`` or ``..``, printable Unicode, at most 1,024 bytes of UTF-8 in all (S3) and 255
in a part (ext4, xfs).
"""

from __future__ import annotations

import unicodedata

from workers.storage.interface import InvalidKeyError

KEY_BYTES = 1024
PART_BYTES = 255
PARTIAL = ".part-"
"""Begins the name of a file that is still being written; no part of a key may."""

_CONTROL = frozenset({"Cc", "Cs"})
"""Control characters (XML listings cannot carry them) and lone surrogates (not UTF-8)."""


def check_key(key: str) -> tuple[str, ...]:
    """The parts of a key.

    Raises:
        InvalidKeyError: a store may not hold it; the message says why.
    """
    _check_text(key, "key")
    parts = tuple(key.split("/"))
    for part in parts:
        if part in ("", ".", ".."):
            raise InvalidKeyError(f"key {key!r} has the part {part!r}")
        if part.startswith(PARTIAL):
            raise InvalidKeyError(f"key {key!r} has a part that begins with {PARTIAL!r}")
        if len(part.encode()) > PART_BYTES:
            raise InvalidKeyError(f"key {key[:80]!r}… has a part of over {PART_BYTES} bytes")
    return parts


def check_prefix(prefix: str) -> tuple[tuple[str, ...], str]:
    """A prefix as whole parts and the beginning of the next one; both may be empty.

    Raises:
        InvalidKeyError: no key can begin with it.
    """
    if prefix == "":
        return (), ""
    _check_text(prefix, "prefix")
    *parts, beginning = prefix.split("/")
    for part in parts:
        if part in ("", ".", "..") or part.startswith(PARTIAL):
            raise InvalidKeyError(f"prefix {prefix!r} has the part {part!r}")
    return tuple(parts), beginning


def check_folder(folder: str) -> tuple[str, ...]:
    """The parts of a folder, which ends with a ``/``; none of the root, the empty text.

    Raises:
        InvalidKeyError: it is no folder of keys.
    """
    parts, beginning = check_prefix(folder)
    if beginning:
        raise InvalidKeyError(f"folder {folder!r} does not end with a '/'")
    return parts


def is_key(text: str) -> bool:
    """Whether a store may hold this key; for names that a listing meets."""
    try:
        check_key(text)
    except InvalidKeyError:
        return False
    return True


def _check_text(text: str, word: str) -> None:
    bad = next((char for char in text if unicodedata.category(char) in _CONTROL), None)
    if bad is not None:
        raise InvalidKeyError(f"{word} {text!r} has the character U+{ord(bad):04X}")
    if "\\" in text:
        raise InvalidKeyError(f"{word} {text!r} has a backslash; parts are separated by '/'")
    if len(text.encode()) > KEY_BYTES:
        raise InvalidKeyError(f"{word} {text[:80]!r}… is over {KEY_BYTES} bytes")
