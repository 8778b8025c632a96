"""A signed event (NIP-01), immutable, its tags exactly as given."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from workers.nostr import sdk, strict_json
from workers.nostr.errors import EventFormatError
from workers.nostr.keys import Keypair
from workers.nostr.tags import Tags, is_hex64, is_hex128

MAX_KIND = 65535
MAX_TIMESTAMP = 2**63 - 1


@dataclass(frozen=True)
class Event:
    """One signed event. Being one does not prove its signature: ask ``verify``."""

    id: str
    pubkey: str
    created_at: int
    """Unix seconds, as its author claims."""
    kind: int
    tags: Tags
    content: str
    sig: str

    @classmethod
    def from_dict(cls, data: Any) -> Event:
        """Reads a decoded JSON object. Keys that NIP-01 does not name are dropped.

        Raises:
            EventFormatError: a field is missing or of the wrong form; the message names it.
        """
        if not isinstance(data, dict):
            raise EventFormatError("an event is a JSON object")
        return cls(
            id=_hex(data, "id", is_hex64, 64),
            pubkey=_hex(data, "pubkey", is_hex64, 64),
            created_at=_number(data, "created_at", MAX_TIMESTAMP),
            kind=_number(data, "kind", MAX_KIND),
            tags=_tags(data.get("tags")),
            content=_text(data.get("content"), "content"),
            sig=_hex(data, "sig", is_hex128, 128),
        )

    @classmethod
    def sign(
        cls,
        keypair: Keypair,
        kind: int,
        tags: Iterable[Sequence[str]],
        content: str,
        created_at: int,
    ) -> Event:
        """Makes and signs an event; tags are kept as given, the author's own ``p`` included."""
        frozen = tuple(tuple(tag) for tag in tags)
        digest = _digest(keypair.pubkey, created_at, kind, frozen, content)
        return cls(
            id=digest.hex(),
            pubkey=keypair.pubkey,
            created_at=created_at,
            kind=kind,
            tags=frozen,
            content=content,
            sig=keypair.sign(digest),
        )

    def verify(self) -> bool:
        """Whether the id is the hash of the fields and the signature is the author's."""
        digest = _digest(self.pubkey, self.created_at, self.kind, self.tags, self.content)
        return digest.hex() == self.id and sdk.verify(self.pubkey, digest, self.sig)

    def to_dict(self) -> dict[str, Any]:
        """The event as NIP-01's JSON object, in its customary order of keys."""
        return {
            "id": self.id,
            "pubkey": self.pubkey,
            "created_at": self.created_at,
            "kind": self.kind,
            "tags": [list(tag) for tag in self.tags],
            "content": self.content,
            "sig": self.sig,
        }

    def to_json(self) -> str:
        """The event as one line of compact JSON."""
        return strict_json.dump(self.to_dict())


def _digest(pubkey: str, created_at: int, kind: int, tags: Tags, content: str) -> bytes:
    """NIP-01: SHA-256 of the compact JSON ``[0, pubkey, created_at, kind, tags, content]``."""
    text = strict_json.dump([0, pubkey, created_at, kind, tags, content])
    try:
        return hashlib.sha256(text.encode()).digest()
    except UnicodeEncodeError as error:
        raise EventFormatError("a text holds a lone surrogate") from error


def _hex(data: dict[str, Any], name: str, check: Any, digits: int) -> str:
    value = data.get(name)
    if not isinstance(value, str) or not check(value):
        raise EventFormatError(f"{name} must be {digits} lower-case hex digits")
    return value


def _number(data: dict[str, Any], name: str, highest: int) -> int:
    value = data.get(name)
    if type(value) is not int or not 0 <= value <= highest:  # bool is an int, and no number here
        raise EventFormatError(f"{name} must be a whole number from 0 to {highest}")
    return value


def _text(value: Any, name: str) -> str:
    if not isinstance(value, str):
        raise EventFormatError(f"{name} must be a text")
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise EventFormatError(f"{name} holds a lone surrogate") from error
    return value


def _tags(value: Any) -> Tags:
    if not isinstance(value, list):
        raise EventFormatError("tags must be a list")
    return tuple(_tag(tag) for tag in value)


def _tag(tag: Any) -> tuple[str, ...]:
    if not isinstance(tag, list) or not tag:
        raise EventFormatError("a tag must be a list of one or more texts")
    return tuple(_text(part, "a tag") for part in tag)
