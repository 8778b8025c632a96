"""Budgets while several calls are in flight."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from aiohttp import web

from tests.workers.gateway.upstreams import COMPLETION, access, gateway_to, provider
from workers.gateway import CallResult


def test_calls_in_flight_count_and_a_budget_that_is_not_spent_refuses_nothing(
    tmp_path: Path,
) -> None:
    most = under_way = 0

    async def wait(_: web.Request) -> web.Response:
        nonlocal most, under_way
        under_way += 1
        most = max(most, under_way)
        for _ in range(20):
            await asyncio.sleep(0)
        under_way -= 1
        return web.json_response(COMPLETION)

    # A call may take 150 tokens of the 250 and takes 100, so two of them go at once and no more.
    agents_ = (access("a-1", max_output_tokens=250), access("b-1"), access("c-1"))

    async def run() -> None:
        async with (
            provider(wait) as url,
            gateway_to(url, tmp_path, agents=agents_, trial_max_cost_usd=0.0136) as agents,
            asyncio.timeout(10),
        ):
            body = {"max_completion_tokens": 150}
            found = await asyncio.gather(*(agents.ask(body, agent="a-1") for _ in range(5)))
            assert sorted(status for status, _, _ in found) == [200, 200, 200, 402, 402]
            assert most == 2
            # The trial has 0.00334 dollars left. A call may take a whole one and takes 0.00342.
            several = (agents.ask(agent=agent) for agent in ("b-1", "c-1"))
            assert sorted([status for status, _, _ in await asyncio.gather(*several)]) == [200, 402]

    asyncio.run(run())


def test_an_agent_that_leaves_while_its_budget_may_be_spent_made_no_call(tmp_path: Path) -> None:
    asked, release = asyncio.Event(), asyncio.Event()

    async def wait(_: web.Request) -> web.Response:
        asked.set()
        await release.wait()
        return web.json_response(COMPLETION)

    async def run() -> None:
        async with (
            provider(wait) as url,
            gateway_to(url, tmp_path, agents=(access(max_calls=1), access("b-1"))) as agents,
            asyncio.timeout(10),
        ):
            first = asyncio.create_task(agents.ask())
            await asked.wait()
            second = asyncio.create_task(agents.ask())
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(asyncio.shield(second), 0.05)
            second.cancel()
            await asyncio.gather(second, return_exceptions=True)
            while len(agents.trial.lines()) < 1:  # noqa: ASYNC110 - it is written when it is seen
                await asyncio.sleep(0.005)
            (cut,) = agents.trial.lines()
            assert (cut.result, cut.forwarded, cut.counted) == (CallResult.CUT, False, None)
            release.set()
            assert (await first)[0] == 200
            assert agents.trial.usage().calls == 1

    asyncio.run(run())
