"""``python -m tests.workers.relay.load``: what the relay takes and costs, one figure a line.

CPU seconds of this process alone, the best of several rounds: other processes disturb them little.
"""

from __future__ import annotations

import asyncio
import gc
import json
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path

import aiohttp

from tests.workers.relay.builders import Talker, World
from tests.workers.relay.test_bridge import Caller
from workers.nostr.attestation import attest
from workers.nostr.event import Event
from workers.nostr.keys import Keypair
from workers.relay import EmbeddedRelay, RelayClient
from workers.relay.outbox import Message
from workers.relay.replying import json_pieces

ADDRESS = "http://localhost:3600"
PAGE = 1000


class Mute:
    """Takes what a session says and counts its consents."""

    def __init__(self) -> None:
        self.consents = 0

    def reply(self, message: Message) -> None:
        self.consents += isinstance(message, str) and ",true," in message

    push = reply


def best(rounds: int, work: Callable[[int], Callable[[], object]]) -> float:
    """The least CPU seconds of several rounds; each is prepared outside the measure."""
    found = []
    for number in range(rounds):
        act = work(number)
        began = time.process_time()
        act()
        found.append(time.process_time() - began)
    return min(found)


def accepting(rounds: int, count: int) -> tuple[float, float]:
    """CPU seconds per event: bare verification, and text in to acceptance out."""
    world = World()
    channel = world.channel(world.agent)
    talker = Talker(world).log_in(world.agent)
    mute = Mute()
    talker.session._outbox = mute
    tags = [["h", channel], ["p", world.user.pubkey]]

    def events(number: int) -> list[Event]:
        return [world.sign(world.agent, 9, tags, f"hello {number} {i}") for i in range(count)]

    def verify(number: int) -> Callable[[], object]:
        made = events(-number - 1)
        return lambda: [event.verify() for event in made]

    def submit(number: int) -> Callable[[], object]:
        texts = [json.dumps(["EVENT", event.to_dict()]) for event in events(number)]

        def receive() -> None:
            for text in texts:
                talker.session.receive(text)

        return receive

    bare, whole = best(rounds, verify), best(rounds, submit)
    assert mute.consents == rounds * count
    return bare / count, whole / count


def serving_a_page(rounds: int) -> float:
    """CPU seconds for a page of a thousand messages over the bridge, request to last byte."""
    world = World()
    channel = world.channel(world.agent)
    text = "a usual message of an agent, of about a hundred characters, which says how far it is: "
    for number in range(PAGE):
        world.message(world.agent, channel, f"{text}{number}", ["p", world.user.pubkey])
    caller = Caller(world)
    body = json.dumps([{"kinds": [9], "#h": [channel], "limit": PAGE}]).encode()

    def ask(number: int) -> Callable[[], object]:
        request = caller.request(world.user, "/query", body)
        return lambda: [piece.encode() for piece in json_pieces(caller.bridge.handle(request).body)]

    return best(rounds, ask)


def resident_mb() -> float:
    """Memory of this process that is in use (Linux)."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / 2**20


async def idling(count: int) -> float:
    """Megabytes for idle trials, each with a channel, a user over HTTP and a subscribed agent.

    The clients' memory is counted in: they live in this process.
    """
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        await idle_trial(stack, folder / "first")
        gc.collect()
        before = resident_mb()
        for number in range(count):
            await idle_trial(stack, folder / str(number))
        gc.collect()
        return resident_mb() - before


async def idle_trial(stack: AsyncExitStack, socket: Path) -> None:
    """One trial that waits for something to happen."""
    owner, user, agent = (Keypair.generate() for _ in range(3))
    relay = EmbeddedRelay(owner_pubkey=owner.pubkey)
    stack.push_async_callback(relay.close)
    await relay.serve_unix(socket)
    client = RelayClient(ADDRESS, user, attest(owner, user.pubkey), unix_socket=socket)
    await stack.enter_async_context(client)
    channel = await client.create_channel("trial")
    await client.add_member(channel, agent.pubkey)
    http = await stack.enter_async_context(
        aiohttp.ClientSession(connector=aiohttp.UnixConnector(str(socket)))
    )
    ws = await http.ws_connect(ADDRESS)
    _, challenge = await ws.receive_json()
    tags = [["relay", "ws://localhost:3600"], ["challenge", challenge]]
    proof = attest(owner, agent.pubkey).to_tag()
    event = Event.sign(agent, 22242, [*tags, proof], "", int(time.time()))
    await ws.send_json(["AUTH", event.to_dict()])
    await ws.receive_json()
    await ws.send_json(["REQ", "s", {"kinds": [9], "#h": [channel]}])
    assert await ws.receive_json() == ["EOSE", "s"]


def main() -> None:
    """Measures and writes all figures."""
    idle = asyncio.run(idling(200))  # first, while no freed memory could be used again
    bare, whole = accepting(rounds=20, count=200)
    lines = [
        f"verification alone {bare * 1e6:.0f} µs, {1 / bare:.0f} events/s",
        f"accepted {whole * 1e6:.0f} µs, {1 / whole:.0f} events/s, {whole / bare:.2f} × bare",
        f"page of {PAGE} messages {serving_a_page(rounds=10) * 1e3:.1f} ms",
        f"200 idle trials {idle:.0f} MB, clients included",
    ]
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
