"""``python -m tests.workers.trial.waiting_agents``: agents that only wait, many in one process.

Standard input has a JSON document a line: an agent to start, or the word that all may end their
turns. An agent logs in, subscribes, waits for the task, says that its turn has started, and waits
for that word; then it answers and says that the turn is complete.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
import time
from pathlib import Path
from typing import Any

import aiohttp

from workers.nostr.attestation import Attestation
from workers.nostr.event import Event
from workers.nostr.keys import Keypair

ANSWER_S = 60.0


async def agent(order: dict[str, Any], go: asyncio.Event) -> None:
    """One agent from its first connection to the end of its turn."""
    own = order["agent"]
    keys, channel = Keypair.from_secret(own["BUZZ_PRIVATE_KEY"]), own["BUZZ_ACP_CHANNELS"]
    url = own["BUZZ_RELAY_URL"]
    log = Path(order["logs"]) / f"{own['APIARY_AGENT_ID']}.stdout.log"
    # Several loops open more sockets than a default connector lets them.
    async with (
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session,
        session.ws_connect(
            f"http://127.0.0.1:{order['port']}/",
            headers={"Host": url.removeprefix("ws://")},
            heartbeat=None,
        ) as link,
    ):

        async def told(word: str) -> list[Any]:
            while True:
                answer: list[Any] = await link.receive_json(timeout=ANSWER_S)
                if answer[0] == word:
                    return answer

        _, challenge = await told("AUTH")
        proof = Attestation.from_text(own["BUZZ_AUTH_TAG"]).to_tag()
        tags = [["relay", url], ["challenge", challenge], proof]
        await link.send_json(["AUTH", _signed(keys, 22242, tags, "")])
        await told("OK")
        await link.send_json(["REQ", "s", {"kinds": [9], "#h": [channel], "#p": [keys.pubkey]}])
        _, _, task = await told("EVENT")
        with log.open("a") as said:
            said.write(f"turn starting for channel {channel}\n")
        await go.wait()
        reply = [["h", channel], ["e", task["id"], "", "reply"], ["p", task["pubkey"]]]
        await link.send_json(["EVENT", _signed(keys, 9, reply, "done")])
        await told("OK")
        with log.open("a") as said:
            said.write(f"turn complete for channel {channel}\n")


def _signed(keys: Keypair, kind: int, tags: list[Any], text: str) -> dict[str, Any]:
    return Event.sign(keys, kind, tags, text, int(time.time())).to_dict()


async def main() -> None:
    """Starts agents as they are ordered, until standard input ends."""
    orders = asyncio.StreamReader(limit=2**20)
    await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(orders), sys.stdin
    )
    go = asyncio.Event()
    running: set[asyncio.Task[None]] = set()
    while line := await orders.readline():
        order = json.loads(line)
        if order.get("go"):
            go.set()
            continue
        running.add(asyncio.create_task(agent(order, go)))
    for task in running:
        task.cancel()
    for task in running:
        with contextlib.suppress(asyncio.CancelledError):
            await task


if __name__ == "__main__":
    asyncio.run(main())
