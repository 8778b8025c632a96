"""The harness's side of a relay: one key over the HTTP bridge, embedded or external alike."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from workers.nostr import strict_json
from workers.nostr.attestation import Attestation
from workers.nostr.engram import HEAD_LIMIT, Engram, EngramCodec, next_timestamp, slug_of
from workers.nostr.errors import JsonError
from workers.nostr.event import Event
from workers.nostr.keys import Keypair
from workers.nostr.tags import first, reply_tags
from workers.relay import kinds
from workers.relay.channel_info import ChannelInfo, Member, channel_info
from workers.relay.errors import RelayError, RelayRefusedError, RelayUnreachableError
from workers.relay.transport import Transport

PAGE = 500
"""Events that a paged read asks for at a time."""


@dataclass(frozen=True)
class Published:
    """A relay's answer to an event."""

    event_id: str
    accepted: bool
    message: str
    """Begins with ``duplicate:`` where nothing new was stored."""


class RelayClient:
    """Acts on a relay with one key. Use it as an async context manager."""

    def __init__(
        self,
        base_url: str,
        keypair: Keypair,
        auth_tag: Attestation | None,
        *,
        unix_socket: Path | None = None,
        gateway: tuple[str, int] | None = None,
        timeout_s: float = 30,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """A client that is not connected yet.

        Args:
            base_url: the relay's canonical address, ``http`` or ``ws``; it is what is signed.
            keypair: the acting key.
            auth_tag: its owner's attestation; None for a direct member.
            unix_socket: where to connect instead of the address's own host.
            gateway: likewise, a host and its port.
            timeout_s: deadline of each method's every request, its retries included.
            clock: Unix seconds.
        """
        self.keypair = keypair
        self._auth_tag = auth_tag
        self._clock = clock
        self._transport = Transport(
            base_url,
            keypair,
            auth_tag,
            unix_socket=unix_socket,
            gateway=gateway,
            timeout_s=timeout_s,
            clock=clock,
        )

    async def __aenter__(self) -> Self:
        await self._transport.open()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._transport.close()

    async def ready(self) -> bool:
        """Whether the relay says that it is ready (``GET /_readiness``)."""
        try:
            return not await self.unready()
        except RelayUnreachableError:
            return False

    async def unready(self) -> str:
        """Why the relay is not ready, in its own words; empty: it is (``GET /_readiness``).

        Raises:
            RelayUnreachableError: no answer came.
        """
        status, text = await self._transport.get("/_readiness")
        return "" if status == 200 else f"{status}: {text[:200]}"

    async def information(self) -> dict[str, Any]:
        """What the relay says of itself (NIP-11); empty where that is no such document.

        Raises:
            RelayUnreachableError: no answer came.
        """
        status, text = await self._transport.get("/info", "application/nostr+json")
        try:
            data = strict_json.parse(text) if status == 200 else None
        except JsonError:
            return {}
        return data if isinstance(data, dict) else {}

    async def publish(self, event: Event) -> Published:
        """Submits a signed event; a retry sends the same bytes, so it is stored once.

        Raises:
            RelayRefusedError: the relay refused it.
            RelayUnreachableError: no answer came; it may have been stored all the same.
        """
        reply = await self._transport.post("/events", event.to_json().encode())
        if not isinstance(reply, dict):
            raise RelayError("POST /events: the answer is no JSON object")
        return Published(
            str(reply.get("event_id", event.id)),
            reply.get("accepted") is True,
            str(reply.get("message", "")),
        )

    async def query(self, filters: Sequence[dict[str, Any]]) -> list[Event]:
        """The events that match any of the filters, in the relay's order, signatures verified.

        Raises:
            RelayRefusedError: the relay refused the filters.
            RelayUnreachableError: no answer came.
            RelayError: the answer is no list of signed events.
        """
        reply = await self._transport.post("/query", strict_json.dump(list(filters)).encode())
        return _events(reply)

    async def count(self, filters: Sequence[dict[str, Any]]) -> int:
        """How many events match any of the filters.

        Raises:
            RelayRefusedError: the relay refused the filters.
            RelayUnreachableError: no answer came.
        """
        reply = await self._transport.post("/count", strict_json.dump(list(filters)).encode())
        count = reply.get("count") if isinstance(reply, dict) else None
        if type(count) is not int:
            raise RelayError("POST /count: the answer has no count")
        return count

    async def create_channel(
        self, name: str, *, about: str = "", ttl: int | None = None, channel: str | None = None
    ) -> str:
        """Creates a private stream channel, this key as its owner; gives its id.

        Args:
            name: it need not be the only one of its name.
            about: its description.
            ttl: seconds without an event after which the relay archives it; None: never.
            channel: the id that it is to have; None: a new one.

        Raises:
            RelayRefusedError: the relay refused it.
            RelayUnreachableError: no answer came; it may be there all the same.
        """
        channel = channel or str(uuid.uuid4())
        tags = [
            ("h", channel),
            ("name", name),
            ("visibility", "private"),
            ("channel_type", "stream"),
        ]
        if about:
            tags.append(("about", about))
        if ttl is not None:
            tags.append(("ttl", str(ttl)))
        await self._command(kinds.CREATE_GROUP, tags)
        return channel

    async def add_member(self, channel: str, pubkey: str, role: str = "member") -> None:
        """Adds a key to a channel, or changes its role. Add members one after another.

        Raises:
            RelayRefusedError: the relay refused it.
        """
        await self._command(kinds.ADD_MEMBER, [("h", channel), ("p", pubkey), ("role", role)])

    async def archive(self, channel: str) -> None:
        """Archives a channel; an archived one is no error.

        Raises:
            RelayRefusedError: the relay refused it.
        """
        await self._command(kinds.EDIT_GROUP, [("h", channel), ("archived", "true")])

    async def set_profile(self, display_name: str, about: str | None = None) -> Event:
        """Sets this key's profile, keeping the fields that are not named.

        A profile that says so already is left as it is, even if it came between. A new version is
        later than the one it replaces even within one second, so that it wins (of two profiles of
        one second the relay keeps the lower id).

        Raises:
            RelayRefusedError: the relay refused it, or a newer profile was there.
        """
        try:
            return await self._set_profile(display_name, about)
        except RelayRefusedError as error:
            # Two trials of one deployment share the identities that are derived from its owner.
            if not error.reason.startswith("duplicate:"):
                raise
            return await self._set_profile(display_name, about)

    async def _set_profile(self, display_name: str, about: str | None) -> Event:
        held = await self.query([{"kinds": [0], "authors": [self.keypair.pubkey], "limit": 1}])
        before = _profile(held[0]) if held else {}
        profile = {**before, "display_name": display_name}
        if about is not None:
            profile["about"] = about
        proved = self._auth_tag is None or (held and first(held[0].tags, "auth") is not None)
        if held and proved and profile == before:
            return held[0]
        moment = max(int(self._clock()), held[0].created_at + 1 if held else 0)
        event = self._sign(kinds.PROFILE, (), strict_json.dump(profile), moment)
        await self._publish_new(event)
        return event

    async def send_message(
        self,
        channel: str,
        content: str,
        *,
        mentions: Iterable[str] = (),
        reply_to: Event | str | None = None,
    ) -> Event:
        """Posts a message; gives it as signed.

        Args:
            channel: the channel's id.
            content: the text, unchanged.
            mentions: keys to notify.
            reply_to: the message that it answers, or that one's id.

        Raises:
            RelayRefusedError: the relay refused it.
            RelayError: the message to answer is unknown.
        """
        parent = await self._event(reply_to) if isinstance(reply_to, str) else reply_to
        tags: list[tuple[str, ...]] = [("h", channel)]
        if parent is not None:
            tags.extend(reply_tags(parent.id, parent.tags))
        tags.extend(("p", key) for key in dict.fromkeys(mentions))
        event = self._sign(kinds.MESSAGE, tags, content)
        await self._publish_new(event)
        return event

    async def write_memory(self, slug: str, value: str) -> Event:
        """Sets one of this key's own memories under the owner who attested it.

        Raises:
            EngramError: the slug or the value cannot be a memory's.
            RelayRefusedError: the relay refused it, or another write came between.
            RelayError: this key has no owner.
        """
        if self._auth_tag is None:
            raise RelayError("a memory needs an owner, and this key has no attestation")
        codec = EngramCodec(self.keypair, agent=self.keypair.pubkey, owner=self._auth_tag.owner)
        slug = slug_of(slug)
        head = await self._head(codec, slug)
        event = codec.seal(slug, value, next_timestamp(self._clock(), head))
        await self._publish_new(event)
        return event

    async def read_channel(self, channel: str, *, kinds: Sequence[int]) -> list[Event]:
        """All of a channel's events of some kinds, newest first, however many pages it takes."""
        return await self._read_all({"kinds": list(kinds), "#h": [channel]})

    async def find_channels(self, name: str, include_archived: bool = True) -> list[ChannelInfo]:
        """The channels of exactly this name (in any case) that this key may see, by id."""
        events = await self._read_all({"kinds": [kinds.GROUP_METADATA]})
        found = [channel_info(event) for event in events]
        return sorted(
            (
                info
                for info in found
                if info.name.casefold() == name.casefold()
                and (include_archived or not info.archived)
            ),
            key=lambda info: (info.name, info.channel_id),
        )

    async def members(self, channel: str) -> list[Member]:
        """A channel's members in order of joining; empty where it cannot be read."""
        found = await self.query([{"kinds": [kinds.GROUP_MEMBERS], "#d": [channel], "limit": 1}])
        if not found:
            return []
        rows = (tag for tag in found[0].tags if tag[0] == "p" and len(tag) >= 2)
        return [Member(tag[1], tag[3] if len(tag) >= 4 and tag[3] else "member") for tag in rows]

    async def _read_all(self, wanted: dict[str, Any]) -> list[Event]:
        """Pages with ``until`` and ``before_id`` of the last event; a short page is the end."""
        found: dict[str, Event] = {}
        cursor: dict[str, Any] = {}
        while True:
            page = await self.query([{**wanted, **cursor, "limit": PAGE}])
            known = len(found)
            found.update((event.id, event) for event in page)
            if len(page) < PAGE:
                return list(found.values())
            if len(found) == known:
                raise RelayError("POST /query: the relay gives the same page again")
            cursor = {"until": page[-1].created_at, "before_id": page[-1].id}

    async def _head(self, codec: EngramCodec, slug: str) -> Engram | None:
        found = await self.query(
            [
                {
                    "kinds": [kinds.ENGRAM],
                    "authors": [codec.agent],
                    "#d": [codec.d_tag(slug)],
                    "#p": [codec.owner],
                    "limit": HEAD_LIMIT,
                }
            ]
        )
        return codec.head(slug, found)

    async def _event(self, event_id: str) -> Event:
        found = await self.query([{"ids": [event_id], "limit": 1}])
        if not found:
            raise RelayError(f"no event {event_id} to reply to")
        return found[0]

    async def _command(self, kind: int, tags: Sequence[tuple[str, ...]]) -> None:
        await self._publish_new(self._sign(kind, tags, ""))

    async def _publish_new(self, event: Event) -> None:
        """Publishes an event that must win.

        ``duplicate:`` is what a retry hears whose first attempt was stored (for a channel even
        with ``accepted: false``); it is told from a lost race by asking for the event.
        """
        answer = await self.publish(event)
        is_duplicate = answer.message.startswith("duplicate:")
        if answer.accepted and not is_duplicate:
            return
        if is_duplicate and await self.query([{"ids": [event.id], "limit": 1}]):
            return
        raise RelayRefusedError("POST /events", 200, answer.message)

    def _sign(
        self,
        kind: int,
        tags: Sequence[tuple[str, ...]],
        content: str,
        created_at: int | None = None,
    ) -> Event:
        """Signs an event, the attestation last (NIP-OA as Buzz's own command does it)."""
        proof = () if self._auth_tag is None else (self._auth_tag.to_tag(),)
        moment = int(self._clock()) if created_at is None else created_at
        return Event.sign(self.keypair, kind, (*tags, *proof), content, moment)


def _events(reply: Any) -> list[Event]:
    if not isinstance(reply, list):
        raise RelayError("POST /query: the answer is no JSON array")
    try:
        events = [Event.from_dict(item) for item in reply]
    except ValueError as error:
        raise RelayError(f"POST /query: the answer holds no event: {error}") from error
    for event in events:
        if not event.verify():
            raise RelayError(f"POST /query: event {event.id} has a wrong signature")
    return events


def _profile(event: Event) -> dict[str, Any]:
    try:
        data = strict_json.parse(event.content)
    except JsonError:
        return {}
    return data if isinstance(data, dict) else {}
