"""Engrams: an agent's memories, encrypted between it and its owner (NIP-AE, kind 30174).

Both ends derive the same key, so either can read; only the agent writes.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from workers.nostr import strict_json
from workers.nostr.curve import shared_x
from workers.nostr.errors import EngramError, JsonError
from workers.nostr.event import Event
from workers.nostr.keys import Keypair
from workers.nostr.tags import Tags, is_hex64, values

ENGRAM_KIND = 30174
CORE = "core"
HEAD_LIMIT = 16
"""How many candidates a query for one head asks for."""
MAX_SLUG_BYTES = 255
MAX_BODY_BYTES = 65535
_D_DOMAIN = b"agent-memory/v1/d-tag\x00"
_SLUG = re.compile(r"mem(/[a-z0-9][a-z0-9_-]{0,63})+")
_MIN_PAYLOAD_BYTES = 99


@dataclass(frozen=True)
class Engram:
    """One memory as read from a valid event."""

    slug: str
    value: str | None
    """None: a tombstone."""
    event_id: str
    created_at: int


def slug_of(text: str) -> str:
    """The slug that a user's text names: ``core``, or ``mem/…`` (the prefix may be left out).

    Raises:
        EngramError: it is outside the grammar.
    """
    slug = text if text == CORE or text.startswith("mem/") else f"mem/{text}"
    if not _is_slug(slug):
        raise EngramError(f"not a memory's name: {text[:80]!r}")
    return slug


class EngramCodec:
    """Writes and reads the memories of one agent under one owner."""

    def __init__(self, keypair: Keypair, *, agent: str, owner: str) -> None:
        """Derives the pair's key (about 3 ms).

        Args:
            keypair: the agent's or the owner's pair.
            agent: the agent's public key.
            owner: the owner's public key.

        Raises:
            EngramError: the pair belongs to neither, or both are one key.
        """
        if keypair.pubkey not in (agent, owner) or agent == owner:
            raise EngramError("memories are between an agent and its owner, of which we are one")
        self.agent = agent
        self.owner = owner
        self._keypair = keypair
        self._peer = owner if keypair.pubkey == agent else agent
        self._key = conversation_key(keypair, self._peer)

    def d_tag(self, slug: str) -> str:
        """The ``d`` value of a slug, which tells nothing about it."""
        return hmac.new(self._key, _D_DOMAIN + slug.encode(), hashlib.sha256).hexdigest()

    def seal(self, slug: str, value: str | None, created_at: int) -> Event:
        """A signed event that sets a memory, or with None removes it.

        Raises:
            EngramError: the slug is outside the grammar, the body is too long, ``core`` is to
                be removed, or the pair is the owner's.
        """
        if self._keypair.pubkey != self.agent:
            raise EngramError("only the agent writes its memories")
        body = _body(slug, value)
        if len(body.encode()) > MAX_BODY_BYTES:
            raise EngramError(f"a memory's body has at most {MAX_BODY_BYTES} bytes")
        return Event.sign(
            self._keypair,
            ENGRAM_KIND,
            (("d", self.d_tag(slug)), ("p", self.owner)),
            self._keypair.encrypt(self._peer, body),
            created_at,
        )

    def open(self, event: Event) -> Engram:
        """The memory that an event holds.

        Raises:
            EngramError: it is not this agent's for this owner, does not verify, decrypt or
                parse, or its ``d`` is not that of its slug.
        """
        if event.kind != ENGRAM_KIND or event.pubkey != self.agent:
            raise EngramError("not a memory of this agent")
        if list(values(event.tags, "p")) != [self.owner]:
            raise EngramError("not a memory for this owner")
        if not event.verify():
            raise EngramError("the event's id or signature is wrong")
        slug, value = _parse_body(self._keypair.decrypt(self._peer, event.content))
        if list(values(event.tags, "d")) != [self.d_tag(slug)]:
            raise EngramError("the d tag is not that of the slug inside")
        return Engram(slug, value, event.id, event.created_at)

    def heads(self, events: Iterable[Event]) -> dict[str, Engram]:
        """The current memory of every slug among events; invalid ones are passed over.

        The newest counts, at equal times the lowest id. Tombstones are kept.
        """
        found: dict[str, Engram] = {}
        for event in events:
            try:
                engram = self.open(event)
            except EngramError:
                continue  # NIP-AE: an event that fails any check is no candidate
            known = found.get(engram.slug)
            if known is None or _rank(engram) < _rank(known):
                found[engram.slug] = engram
        return found

    def head(self, slug: str, events: Iterable[Event]) -> Engram | None:
        """The current memory of one slug among events, or None."""
        return self.heads(events).get(slug)


def next_timestamp(now: float, head: Engram | None) -> int:
    """The ``created_at`` of a write: never at or before the head that it replaces."""
    return int(now) if head is None else max(int(now), head.created_at + 1)


def conversation_key(keypair: Keypair, peer: str) -> bytes:
    """The symmetric key of two parties: HKDF-extract, salt ``nip44-v2`` (NIP-44 v2).

    Raises:
        KeyFormatError: the peer's key is on no point of the curve.
    """
    return hmac.new(b"nip44-v2", shared_x(keypair.secret_hex, peer), hashlib.sha256).digest()


def envelope_fault(tags: Tags, content: str) -> str | None:
    """What is wrong with an engram as a relay sees it, which cannot read it; None if nothing."""
    d, p = list(values(tags, "d")), list(values(tags, "p"))
    if len(d) != 1 or not is_hex64(d[0]):
        return "engram must have exactly one d tag of 64 lower-case hex digits"
    if len(p) != 1 or not is_hex64(p[0]):
        return "engram must have exactly one p tag of 64 lower-case hex digits"
    try:
        payload = base64.b64decode(content, validate=True)
    except (binascii.Error, ValueError):
        return "engram content is not NIP-44 v2"
    if len(payload) < _MIN_PAYLOAD_BYTES or payload[0] != 2:
        return "engram content is not NIP-44 v2"
    return None


def _rank(engram: Engram) -> tuple[int, str]:
    return (-engram.created_at, engram.event_id)


def _is_slug(slug: str) -> bool:
    return slug == CORE or (len(slug) <= MAX_SLUG_BYTES and _SLUG.fullmatch(slug) is not None)


def _body(slug: str, value: str | None) -> str:
    if not _is_slug(slug):
        raise EngramError(f"not a memory's name: {slug[:80]!r}")
    if slug != CORE:
        return strict_json.dump({"slug": slug, "value": value})
    if value is None:
        raise EngramError("core cannot be removed")
    return strict_json.dump({"slug": slug, "profile": value})


def _parse_body(text: str) -> tuple[str, str | None]:
    try:
        body: Any = strict_json.parse(text, unique_keys=True)
    except JsonError as error:
        raise EngramError(f"the body is not JSON with unique keys: {error}") from error
    slug = body.get("slug") if isinstance(body, dict) else None
    if not isinstance(slug, str) or not _is_slug(slug):
        raise EngramError("the body names no slug")
    value: Any = body.get("profile") if slug == CORE else body.get("value", False)
    if not isinstance(value, str) and not (value is None and slug != CORE):
        raise EngramError("the body has no value")
    return slug, value
