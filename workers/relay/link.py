"""A WebSocket to a relay on which one key is proved (NIP-42), for the harness itself."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp

from workers.nostr import strict_json
from workers.nostr.errors import JsonError
from workers.nostr.event import Event
from workers.relay import kinds
from workers.relay.dialling import connector
from workers.relay.errors import RelayRefusedError, RelayUnreachableError
from workers.relay.interface import Holder

STEP_S = 10.0
"""For the connection, the challenge, and the answer to AUTH."""
HEARTBEAT_S = 20.0
MAX_MESSAGE_BYTES = 4 * 1024 * 1024
_WORDS = {
    404: "no community is configured for this host",
    503: "the relay is restarting",
}
"""Of an upgrade that is refused, whose body no client gets to see."""


class Link:
    """An open connection, its key proved."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse, url: str, holder: Holder) -> None:
        self._socket = socket
        self._url = url
        self._holder = holder

    async def send(self, *parts: Any) -> None:
        """Sends one message.

        Raises:
            RelayUnreachableError: the connection is gone.
        """
        try:
            await self._socket.send_str(strict_json.dump(parts))
        except (aiohttp.ClientError, OSError) as error:
            raise RelayUnreachableError(f"{self._url}: {type(error).__name__}: {error}") from error

    async def receive(self) -> list[Any]:
        """The next message; empty if it is none.

        Raises:
            RelayUnreachableError: the connection ended.
        """
        message = await self._socket.receive()
        if message.type is not aiohttp.WSMsgType.TEXT:
            words = message.extra or self._socket.close_code or message.type.name.lower()
            raise RelayUnreachableError(f"{self._url}: the connection ended: {words}")
        try:
            data = strict_json.parse(message.data)
        except JsonError:
            return []
        return data if isinstance(data, list) else []

    async def prove(self, challenge: str) -> Event:
        """Answers a challenge of the relay."""
        keys, now = self._holder.keypair, int(time.time())
        tags = (("relay", self._url), ("challenge", challenge), self._holder.attestation.to_tag())
        event = Event.sign(keys, kinds.AUTH, tags, "", now)
        await self.send("AUTH", event.to_dict())
        return event


@asynccontextmanager
async def linked(url: str, gateway: tuple[str, int] | None, holder: Holder) -> AsyncIterator[Link]:
    """Connects and proves the holder's key.

    Raises:
        RelayRefusedError: the relay does not take the connection or the key.
        RelayUnreachableError: no connection, or no answer in time.
    """
    async with aiohttp.ClientSession(connector=connector(None, gateway)) as session:
        try:
            async with asyncio.timeout(STEP_S):
                socket = await session.ws_connect(
                    url, heartbeat=HEARTBEAT_S, max_msg_size=MAX_MESSAGE_BYTES
                )
        except aiohttp.WSServerHandshakeError as error:
            words = _WORDS.get(error.status, error.message)
            raise RelayRefusedError(f"WebSocket {url}", error.status, words) from error
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            words = str(error) or f"no connection within {STEP_S:g} s"
            raise RelayUnreachableError(f"{url}: {type(error).__name__}: {words}") from error
        try:
            link = Link(socket, url, holder)
            try:
                async with asyncio.timeout(STEP_S):
                    await _authenticated(link)
            except TimeoutError as error:
                raise RelayUnreachableError(f"{url}: no AUTH within {STEP_S:g} s") from error
            yield link
        finally:
            await socket.close()


async def _authenticated(link: Link) -> None:
    """Waits for the challenge, which comes first, and for the verdict on the answer."""
    proof: Event | None = None
    while True:
        match await link.receive():
            case ["AUTH", str(challenge)]:
                proof = await link.prove(challenge)
            case ["OK", str(name), bool(accepted), str(words), *_] if proof and name == proof.id:
                if accepted:
                    return
                raise RelayRefusedError("AUTH", 200, words)
            case _:
                pass
