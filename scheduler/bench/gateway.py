"""What the gateway adds to a model call: the same requests through it and past it, by turns.

Endpoint, gateway and client are in one process; the endpoint is the scripted one, which answers
at once. What the gateway adds is then all that lies between the two medians.
"""

from __future__ import annotations

import asyncio
import random
import socket
import tempfile
import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path
from statistics import median
from typing import Any

import aiohttp

from scheduler.bench.figure import Figure
from scheduler.bench.turns import Turns
from workers.contract.condition import Budget, Prices
from workers.contract.endpoint import Endpoint
from workers.gateway import AgentAccess, Gateway
from workers.model.server import ScriptedModel

MODEL = "scripted-silent"
PROMPT_BYTES = 8000
"""About a base prompt with a short conversation."""
AT_ONCE = 16
PRICES = Prices(
    input_per_million_usd=1.0, cached_input_per_million_usd=0.1, output_per_million_usd=2.0
)

Say = Callable[[str], None]


async def measure_gateway(requests: int, rounds: int, seed: int, say: Say) -> list[Figure]:
    """Whole and streamed answers, one after another and several at once.

    Args:
        requests: in each round, of each kind and way.
        rounds: how often all of it is measured, by turns.
        seed: of prompts and answers.
        say: hears what is done.
    """
    straight = "straight to the endpoint"
    latency = {
        stream: Turns(f"call, {'streamed' if stream else 'whole'}", "ms", straight)
        for stream in (False, True)
    }
    rate = Turns(f"calls, {AT_ONCE} at once", "1/s", straight)
    added: list[float] = []
    draws = random.Random(seed)
    async with AsyncExitStack() as stack:
        session = await stack.enter_async_context(aiohttp.ClientSession())
        model = await stack.enter_async_context(ScriptedModel(seed=seed))
        past = Way(session, model.base_url, "none")
        through = await _gateway(stack, session, model.base_url)
        await asyncio.gather(*(way.call(_body(draws, True)) for way in (past, through)))
        for number in range(rounds):
            say(f"round {number + 1} of {rounds}")
            for stream, turns in latency.items():
                pairs = []
                for _ in range(requests):
                    body = _body(draws, stream)
                    bare = await past.call(body)
                    pairs.append((await through.call(body), bare))
                turns.add(median(ours for ours, _ in pairs), median(bare for _, bare in pairs))
                added.append(median(ours - bare for ours, bare in pairs))
            bodies = [_body(draws, False) for _ in range(requests)]
            bare_s = await past.all_of(bodies)
            rate.add(requests / await through.all_of(bodies), requests / bare_s)
    return [
        *(turns.figure for turns in latency.values()),
        Figure.of("call, added by the gateway", added, "ms"),
        rate.figure,
    ]


class Way:
    """One way to the endpoint."""

    def __init__(self, session: aiohttp.ClientSession, base_url: str, token: str) -> None:
        self._session = session
        self._url = f"{base_url}/chat/completions"
        self._headers = {"Authorization": f"Bearer {token}"}

    async def call(self, body: dict[str, Any]) -> float:
        """Milliseconds of a request, to the last byte of its answer."""
        began = time.perf_counter()
        async with self._session.post(self._url, json=body, headers=self._headers) as answer:
            text = await answer.read()
        took = 1e3 * (time.perf_counter() - began)
        if answer.status != 200:
            raise RuntimeError(f"{self._url} answered {answer.status}: {text[:500]!r}")
        return took

    async def all_of(self, bodies: list[dict[str, Any]]) -> float:
        """Seconds for requests of which several are under way at once."""
        waiting = iter(bodies)

        async def one_after_another() -> None:
            for body in waiting:
                await self.call(body)

        began = time.perf_counter()
        await asyncio.gather(*(one_after_another() for _ in range(AT_ONCE)))
        return time.perf_counter() - began


def _body(draws: random.Random, stream: bool) -> dict[str, Any]:
    text = draws.randbytes(PROMPT_BYTES // 2).hex()
    return {
        "model": MODEL,
        "messages": [{"role": "system", "content": text}, {"role": "user", "content": "Go on."}],
        "max_tokens": 100,
        "stream": stream,
    }


async def _gateway(stack: AsyncExitStack, session: aiohttp.ClientSession, base_url: str) -> Way:
    """A trial's own gateway, as a node opens it."""
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="apiary-bench-")))
    endpoints = {MODEL: Endpoint(provider="scripted", base_url=base_url)}
    gateway = await stack.enter_async_context(Gateway(endpoints, {}))
    trial = await gateway.open_trial(
        [AgentAccess("solo-1", MODEL, PRICES, Budget())], folder / "usage.jsonl"
    )
    stack.push_async_callback(trial.close)
    listening = socket.create_server(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{listening.getsockname()[1]}"
    await trial.serve(listening)
    return Way(session, f"{url}/v1", trial.tokens["solo-1"])
