"""Fifty trials at once on one node: whatever an agent tries, it sees nothing of the others."""

from __future__ import annotations

import asyncio
import json
import os
import time
import uuid
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from workers.nostr.attestation import attest
from workers.nostr.event import Event
from workers.nostr.keys import Keypair
from workers.relay import EmbeddedRelay, RelayClient, RelayRefusedError

pytestmark = pytest.mark.long

TRIALS = 50
ADDRESS = "http://localhost:3600"
LISTENING = "0A"


@dataclass
class Trial:
    """One trial: its relay on a socket of its own, its user, its agent, two closed channels."""

    relay: EmbeddedRelay
    socket: Path
    owner: Keypair
    user: Keypair
    agent: RelayClient
    secret: str
    shared: str
    hidden: str
    """A channel of this trial that its own agent is not in."""

    @property
    def me(self) -> str:
        """The agent's key."""
        return self.agent.keypair.pubkey

    def set_up(self) -> None:
        """What a harness provisions."""
        self.relay._core.admit(self.user.pubkey, attest(self.owner, self.user.pubkey), record=True)
        for channel in (self.shared, self.hidden):
            self.put(9007, ["h", channel], ["name", "trial"], ["visibility", "private"])
            self.put(9, ["h", channel], content=f"the word is {self.secret}")
        self.put(9000, ["h", self.shared], ["p", self.me])
        self.put(0, content=json.dumps({"display_name": f"user {self.secret}"}))
        sealed = self.user.encrypt(self.owner.pubkey, self.secret)
        self.put(30174, ["d", "a" * 64], ["p", self.owner.pubkey], content=sealed)

    def put(self, kind: int, *tags: list[str], content: str = "") -> None:
        """An event of the user's, straight into the relay."""
        event = Event.sign(self.user, kind, tags, content, int(time.time()))
        assert self.relay._core.submit(event, self.user.pubkey, over_http=True).accepted

    def own_ids(self) -> set[str]:
        """Every event of this trial."""
        return {event.id for event in self.relay.timeline()}


async def open_trial(stack: AsyncExitStack, folder: Path, number: int) -> Trial:
    owner, user, agent = (Keypair.generate() for _ in range(3))
    relay = EmbeddedRelay(owner_pubkey=owner.pubkey)
    stack.push_async_callback(relay.close)
    socket = folder / f"{number}.sock"
    await relay.serve_unix(socket)
    client = RelayClient(ADDRESS, agent, attest(owner, agent.pubkey), unix_socket=socket)
    await stack.enter_async_context(client)
    names = (uuid.uuid4().hex, str(uuid.uuid4()), str(uuid.uuid4()))
    trial = Trial(relay, socket, owner, user, client, *names)
    trial.set_up()
    return trial


async def reads(trial: Trial, target: Trial) -> list[Event]:
    """All that an agent gets by asking for what another trial has, in every way there is."""
    them = [target.user.pubkey, target.me, target.owner.pubkey]
    ids = sorted(target.own_ids())
    me = trial.me
    asked: list[list[dict[str, Any]]] = [
        [
            {"ids": ids},
            {"kinds": [7, 9], "#e": ids[:20]},
            {"kinds": [9, 40099, 9007], "#h": [target.shared, target.hidden, trial.hidden]},
            {"kinds": [39000, 39001, 39002], "#d": [target.shared, target.hidden, trial.hidden]},
            {"kinds": [39000, 39001, 39002]},
            {"kinds": [39002], "#p": them},
            {"kinds": list(range(20)), "authors": them},
            {"kinds": [30174], "#p": [me]},
            {"#p": [me]},
            {"kinds": [9], "#h": [target.shared], "top_level": True},
        ],
        [{"kinds": [0, 9], "search": words} for words in (target.secret, "the word is")],
        [{"#p": [me], "feed_types": ["mentions", "activity", "needs_action"]}],
        [{"kinds": [20001], "authors": them}],
    ]
    found = [event for filters in asked for event in await trial.agent.query(filters)]
    assert await trial.agent.count([{"kinds": [9], "#h": [target.shared, trial.hidden]}]) == 0
    return found


async def speaks(trial: Trial, target: Trial) -> list[Any]:
    """What an agent's own connection gives when it listens, joins, changes and writes there."""
    agent = trial.agent.keypair
    connector = aiohttp.UnixConnector(str(trial.socket))
    async with (
        aiohttp.ClientSession(connector=connector) as http,
        http.ws_connect(ADDRESS) as ws,
    ):

        async def ask(*message: Any) -> Any:
            await ws.send_json(message)
            return await ws.receive_json()

        def event(kind: int, *tags: Any) -> dict[str, Any]:
            return Event.sign(agent, kind, tags, "x", int(time.time())).to_dict()

        _, challenge = await ws.receive_json()
        tags = [["relay", "ws://localhost:3600"], ["challenge", challenge]]
        proof = event(22242, *tags, attest(trial.owner, agent.pubkey).to_tag())
        assert (await ask("AUTH", proof))[2] is True
        guessed = str(uuid.uuid4())
        replies = [
            await ask("REQ", "s", {"kinds": [9], "#h": [channel]})
            for channel in (target.shared, target.hidden, trial.hidden, guessed)
        ]
        tried: list[tuple[Any, ...]] = [
            (kind, ["h", channel], ["p", agent.pubkey], ["visibility", "open"])
            for channel in (target.shared, target.hidden, trial.hidden)
            for kind in (9, 9000, 9002, 9008, 9021, 20002, 40100)
        ]
        (message,) = (e for e in target.relay.timeline() if e.kind == 9 and has(e, target.shared))
        tried += [(7, ["e", message.id]), (9005, ["h", target.shared], ["e", message.id])]
        return replies + [await ask("EVENT", event(*each)) for each in tried]


def has(event: Event, channel: str) -> bool:
    """Whether an event is of a channel."""
    return ("h", channel) in event.tags


async def attack(trial: Trial, target: Trial) -> None:
    """One agent against one other trial, over its own relay."""
    mine = trial.own_ids()
    found = await reads(trial, target)
    assert {event.id for event in found} <= mine
    assert not [event for event in found if has(event, trial.hidden)]
    assert target.secret not in json.dumps([event.to_dict() for event in found])
    for reply in await speaks(trial, target):
        assert reply[0] == "CLOSED" or reply[2] is False, reply
        assert reply[-1].startswith(("restricted: ", "invalid: ")), reply


def listening_ports_of_this_process() -> set[str]:
    """Local addresses of listening TCP sockets that this process holds (Linux)."""
    mine = set()
    for entry in os.listdir("/proc/self/fd"):
        try:
            mine.add(os.readlink(f"/proc/self/fd/{entry}"))
        except OSError:
            continue  # the descriptor of the listing itself
    found = set()
    for table in ("/proc/self/net/tcp", "/proc/self/net/tcp6"):
        path = Path(table)
        rows = path.read_text().splitlines()[1:] if path.exists() else []
        for fields in (row.split() for row in rows):
            if fields[3] == LISTENING and f"socket:[{fields[9]}]" in mine:
                found.add(fields[1])
    return found


def test_fifty_agents_find_nothing_of_the_other_trials(tmp_path: Path) -> None:
    async def scenario() -> None:
        before = listening_ports_of_this_process()
        async with asyncio.timeout(120), AsyncExitStack() as stack:
            trials = [await open_trial(stack, tmp_path, number) for number in range(TRIALS)]
            held = [trial.own_ids() for trial in trials]
            # No relay is on any of the host's interfaces: it serves the sockets it is given.
            assert listening_ports_of_this_process() == before
            pairs = zip(trials, [*trials[1:], trials[0]], strict=True)
            await asyncio.gather(*(attack(trial, target) for trial, target in pairs))
            assert [trial.own_ids() for trial in trials] == held
            assert sum(map(len, held)) == len(set().union(*held))
            await keys_of_one_trial_are_nothing_in_another(trials)

    asyncio.run(scenario())


async def keys_of_one_trial_are_nothing_in_another(trials: list[Trial]) -> None:
    """Even an agent that reached another trial's socket would stand outside."""
    for trial, target in zip(trials[::10], trials[1::10], strict=True):
        agent = trial.agent.keypair
        proof = attest(trial.owner, agent.pubkey)
        async with RelayClient(ADDRESS, agent, proof, unix_socket=target.socket) as intruder:
            with pytest.raises(RelayRefusedError) as caught:
                await intruder.query([{"kinds": [0]}])
            assert caught.value.status == 403
