from __future__ import annotations

import asyncio

import pytest

from workers.allowance import Purse
from workers.contract.budget import Allowance, Spending


def test_without_a_limit_every_call_goes() -> None:
    async def run() -> None:
        purse = Purse()
        assert [await purse.admit("a/1") for _ in range(5)] == [None] * 5
        purse.charge("a/1", Spending(calls=1, input_tokens=7, output_tokens=3, cost_usd=0.5))
        assert purse.spent == Spending(calls=5, input_tokens=7, output_tokens=3, cost_usd=0.5)
        assert purse.ceiling is None

    asyncio.run(run())


@pytest.mark.parametrize(
    "limit",
    [
        Allowance(calls=1),
        Allowance(input_tokens=7),
        Allowance(output_tokens=3),
        Allowance(cost_usd=0.5),
    ],
)
def test_a_call_waits_for_more_and_goes_when_it_comes(limit: Allowance) -> None:
    async def run() -> None:
        wanted = 0

        def on_want() -> None:
            nonlocal wanted
            wanted += 1

        purse = Purse()
        purse.on_want = on_want
        purse.lend(limit, is_over=False)
        assert await purse.admit("a/1") is None
        purse.charge("a/1", Spending(calls=1, input_tokens=9, output_tokens=4, cost_usd=0.6))
        waiting = [asyncio.create_task(purse.admit("a/1")) for _ in range(2)]
        await asyncio.sleep(0)
        assert purse.wants and wanted == 1
        purse.lend(limit, is_over=False)
        await asyncio.sleep(0)
        assert not any(task.done() for task in waiting)
        double = Allowance(calls=9, input_tokens=18, output_tokens=8, cost_usd=1.2)
        purse.lend(double, is_over=False)
        assert [await task for task in waiting] == [None, None]
        assert (purse.spent.calls, purse.wants, wanted) == (3, False, 1)

    asyncio.run(run())


def test_calls_never_pass_the_ceiling_however_many_wait() -> None:
    async def run() -> None:
        purse = Purse()
        purse.lend(Allowance(calls=2), is_over=False)
        tasks = [asyncio.create_task(purse.admit(f"{n}/1")) for n in range(5)]
        await asyncio.sleep(0)
        assert sum(task.done() for task in tasks) == purse.spent.calls == 2
        purse.lend(Allowance(calls=3), is_over=False)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert sum(task.done() for task in tasks) == purse.spent.calls == 3
        purse.lend(Allowance(calls=3), is_over=True)
        said = [await task for task in tasks]
        assert said.count("the budget of the sweep is spent") == 2

    asyncio.run(run())


def test_a_node_without_a_driver_goes_on_within_what_it_has() -> None:
    async def run() -> None:
        purse = Purse(patience_s=0.02)
        purse.lend(Allowance(calls=1), is_over=False)
        assert await purse.admit("a/1") is None
        assert "no driver lends more" in str(await purse.admit("a/1"))
        assert purse.spent.calls == 1
        assert not purse.wants

    asyncio.run(run())


def test_a_lower_ceiling_takes_back_only_what_is_not_spent() -> None:
    async def run() -> None:
        purse = Purse()
        purse.lend(Allowance(calls=9), is_over=False)
        for _ in range(4):
            await purse.admit("a/1")
        purse.lend(Allowance(calls=2), is_over=False)
        assert purse.ceiling == Allowance(calls=4)

    asyncio.run(run())


def test_another_driver_counts_only_tries_that_no_record_has() -> None:
    async def run() -> None:
        purse = Purse()
        for try_ in ("a/1-1", "a/1-1", "b/1-2"):
            await purse.admit(try_)
        purse.charge("b/1-2", Spending(calls=1, cost_usd=0.25))
        purse.lend(Allowance(calls=3), is_over=True)
        purse.restart({"b/1-2", "c/1-3"})
        assert purse.spent == Spending(calls=1, cost_usd=0.25)
        assert purse.ceiling is None
        assert await purse.admit("b/1-2") is None

    asyncio.run(run())
