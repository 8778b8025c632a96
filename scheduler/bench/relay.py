"""What the relay costs: messages over a WebSocket, against an echo, and against their signatures.

A channel message of an agent is signed beforehand. The relay verifies it, judges it, stores it,
gives it to its subscribers (the agent itself is one) and consents; the echo gives back what it
gets, twice. Both serve on this process's loopback, and the same client speaks to both.
"""

from __future__ import annotations

import asyncio
import json
import random
import socket
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import aiohttp
from aiohttp import web

from scheduler.bench.figure import Figure
from scheduler.bench.turns import Turns, figures, micros_of
from workers.nostr.attestation import attest
from workers.nostr.event import Event
from workers.nostr.keys import Keypair
from workers.relay import EmbeddedRelay, kinds

HOST = "localhost:3600"
ANSWERS = 2
"""To a message: it comes back to its author, who is subscribed, and the consent."""
CHANNEL = "5b0c3c1e-3f57-4b5e-9f0b-0d1f2a3b4c5d"

Say = Callable[[str], None]
Link = aiohttp.ClientWebSocketResponse


async def measure_relay(messages: int, rounds: int, seed: int, say: Say) -> list[Figure]:
    """Messages one after another and all at once, and what the signatures take of it.

    Args:
        messages: in each round, of each kind.
        rounds: how often all of it is measured, by turns.
        seed: of the messages' texts.
        say: hears what is done.
    """
    alone = Turns("message, alone", "µs", "bare WebSocket echo")
    many = Turns(f"message, {messages} at once", "µs", "bare WebSocket echo")
    verified = Turns(f"message, {messages} at once, CPU", "µs", "verifying its signature")
    draws = random.Random(seed)
    async with AsyncExitStack() as stack:
        session = await stack.enter_async_context(aiohttp.ClientSession())
        echo = await stack.enter_async_context(session.ws_connect(await _echo(stack)))
        owner, agent = Keypair.generate(), Keypair.generate()
        relay = await stack.enter_async_context(_relay(session, owner, agent))
        for number in range(rounds):
            say(f"round {number + 1} of {rounds}")
            texts = [_events(agent, messages, draws) for _ in range(2)]
            words = [[json.dumps(["EVENT", each.to_dict()]) for each in one] for one in texts]
            alone.add(
                await micros_of(_one_by_one(relay, words[0]), messages),
                await micros_of(_one_by_one(echo, words[0]), messages),
            )
            spent = time.process_time()
            took = await micros_of(_at_once(relay, words[1]), messages)
            cpu = 1e6 * (time.process_time() - spent) / messages
            many.add(took, await micros_of(_at_once(echo, words[1]), messages))
            spent = time.process_time()
            for each in texts[1]:
                each.verify()
            verified.add(cpu, 1e6 * (time.process_time() - spent) / messages)
    return figures([alone, many, verified])


def _events(author: Keypair, count: int, draws: random.Random) -> list[Event]:
    tags = [["h", CHANNEL], ["p", author.pubkey]]
    now = int(time.time())
    return [
        Event.sign(author, kinds.MESSAGE, tags, draws.randbytes(100).hex(), now)
        for _ in range(count)
    ]


async def _one_by_one(link: Link, texts: Sequence[str]) -> None:
    for text in texts:
        await link.send_str(text)
        for _ in range(ANSWERS):
            _check(await link.receive_str())


async def _at_once(link: Link, texts: Sequence[str]) -> None:
    async def send() -> None:
        for text in texts:
            await link.send_str(text)

    sending = asyncio.create_task(send())
    for _ in range(ANSWERS * len(texts)):
        _check(await link.receive_str())
    await sending


def _check(answer: str) -> None:
    if answer.startswith('["OK"') and ",true," not in answer:
        raise RuntimeError(f"the relay refused a message: {answer}")


async def _echo(stack: AsyncExitStack) -> str:
    """The address of a server that says twice what it is told."""

    async def answer(request: web.Request) -> web.WebSocketResponse:
        link = web.WebSocketResponse()
        await link.prepare(request)
        async for message in link:
            for _ in range(ANSWERS):
                await link.send_str(message.data)
        return link

    application = web.Application()
    application.router.add_get("/", answer)
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    stack.push_async_callback(runner.cleanup)
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    return f"http://127.0.0.1:{runner.addresses[0][1]}/"


@asynccontextmanager
async def _relay(
    session: aiohttp.ClientSession, owner: Keypair, agent: Keypair
) -> AsyncIterator[Link]:
    """A link on which an agent is logged in, with a channel that it is subscribed to."""
    relay = EmbeddedRelay(owner_pubkey=owner.pubkey, host=HOST)
    listening = socket.create_server(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{listening.getsockname()[1]}/"
    await relay.serve(listening)
    proof = attest(owner, agent.pubkey).to_tag()
    try:
        async with session.ws_connect(url, headers={"Host": HOST}) as link:
            _, challenge = await link.receive_json()
            tags = [["relay", f"ws://{HOST}"], ["challenge", challenge], proof]
            await _agreed(link, "AUTH", Event.sign(agent, kinds.AUTH, tags, "", int(time.time())))
            channel = [["h", CHANNEL], ["name", "bench"], ["visibility", "private"]]
            await _agreed(
                link, "EVENT", Event.sign(agent, kinds.CREATE_GROUP, channel, "", int(time.time()))
            )
            await link.send_json(["REQ", "s", {"kinds": [kinds.MESSAGE], "#h": [CHANNEL]}])
            await _told(link, "EOSE")
            yield link
    finally:
        await relay.close()


async def _agreed(link: Link, word: str, event: Event) -> None:
    await link.send_json([word, event.to_dict()])
    answer = await _told(link, "OK")
    if answer[2] is not True:
        raise RuntimeError(f"the relay refused {word}: {answer}")


async def _told(link: Link, word: str) -> list[Any]:
    while True:
        answer: list[Any] = await link.receive_json()
        if answer[0] == word:
            return answer
