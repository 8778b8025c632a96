"""The ledger's sums, the records' and the endpoint's own count agree."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.workers.gateway.upstreams import access, listening
from workers.allowance import Purse
from workers.contract.budget import Spending
from workers.contract.endpoint import Endpoint
from workers.gateway import AgentAccess, CallResult, Gateway, LedgerLine, usage_of
from workers.model import ScriptedModel

pytestmark = pytest.mark.long

MODEL = "scripted-solver"
BODIES: dict[str, dict[str, Any]] = {
    "/v1/chat/completions": {
        "messages": [{"role": "user", "content": "hi"}],
        "stream_options": {"include_usage": True},
    },
    "/v1/responses": {"input": "hi"},
    "/v1/messages": {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 100},
}
TRIALS = 9


async def has_asked(model: ScriptedModel, count: int) -> None:
    """Waits until requests have come, and an event of their answers has gone out."""
    give_up = time.monotonic() + 10
    for _ in range(100_000):
        if model.tally.requests == count or time.monotonic() > give_up:
            break
        await asyncio.sleep(0.005)
    assert model.tally.requests == count
    await asyncio.sleep(0.06)


def written_to(folder: Path) -> list[LedgerLine]:
    return [
        LedgerLine.from_json(line, path.name)
        for path in sorted(folder.glob("*.jsonl"))
        for line in path.read_text().splitlines()
    ]


def test_the_sums_agree_when_agents_are_killed_in_mid_stream(tmp_path: Path) -> None:
    """Over trials of which every third is whole, and the others end in the middle of a stream.

    The endpoint's own count is of requests, and of the answers that it sent to their end.
    """

    async def ask(url: str, token: str, path: str, *, stream: bool) -> None:
        body = {"model": MODEL, "stream": stream, **BODIES[path]}
        if not stream:
            body.pop("stream_options", None)
        headers = {"Authorization": f"Bearer {token}"}
        async with (
            aiohttp.ClientSession() as client,
            client.post(url + path, json=body, headers=headers) as answer,
        ):
            await answer.read()

    async def run() -> None:
        purse = Purse()
        records = []
        async with ScriptedModel(seed=3, event_s=0.05) as model:
            endpoint = Endpoint(provider="scripted", base_url=model.base_url)
            async with Gateway({MODEL: endpoint}, {}, purse=purse) as gateway:
                for number in range(TRIALS):
                    one = AgentAccess("solo-1", MODEL, access().prices, access().budget)
                    ledger = tmp_path / f"{number}.jsonl"
                    trial = await gateway.open_trial((one,), ledger, try_=f"{number}/1")
                    sock, port = listening()
                    await trial.serve(sock)
                    url, token = f"http://127.0.0.1:{port}", trial.tokens["solo-1"]
                    for path in BODIES:
                        await ask(url, token, path, stream=False)
                    sent = model.tally.requests
                    agents = [
                        asyncio.create_task(ask(url, token, path, stream=True)) for path in BODIES
                    ]
                    await has_asked(model, sent + len(agents))
                    if number % 3 == 0:
                        await asyncio.gather(*agents)
                    elif number % 3 == 1:
                        for task in agents:
                            task.cancel()  # As if the agent's container was killed.
                    await trial.close()
                    await asyncio.gather(*agents, return_exceptions=True)
                    records.append(trial.usage())
        lines = written_to(tmp_path)
        total = usage_of(lines)
        for name in ("calls", "input_tokens", "output_tokens", "reasoning_tokens"):
            assert getattr(total, name) == sum(getattr(each, name) for each in records)
        assert total.cost_usd == pytest.approx(sum(each.cost_usd for each in records))
        assert total.calls == model.tally.requests == 6 * TRIALS
        whole = [line for line in lines if line.result is CallResult.OK]
        cut = [line for line in lines if line.result is CallResult.CUT]
        assert len(whole) == model.tally.reports == 6 * TRIALS - 3 * (TRIALS - TRIALS // 3)
        assert len(cut) == total.unknown_cost_calls == total.calls - len(whole)
        assert sum(line.input_tokens or 0 for line in whole) == model.tally.input_tokens
        assert sum(line.output_tokens or 0 for line in whole) == model.tally.output_tokens
        assert sum(line.reasoning_tokens or 0 for line in whole) == model.tally.reasoning_tokens
        assert all(line.cost_usd is None and line.output_tokens is None for line in cut)
        counted = sum((each.counted for each in records), Spending())
        assert purse.spent.calls == counted.calls == total.calls
        assert purse.spent.input_tokens == counted.input_tokens == total.counted.input_tokens
        assert purse.spent.cost_usd == pytest.approx(counted.cost_usd)
        assert counted.cost_usd > total.cost_usd

    asyncio.run(run())
