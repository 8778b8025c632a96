"""A node's waiting line for one account."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from tests.scheduler.permits.virtual import run_virtually
from workers.contract.permits import Loan
from workers.permits.line import LONGEST_HOLD_S, Pass, WaitingLine


def now() -> float:
    return asyncio.get_running_loop().time()


async def enter(line: WaitingLine, agent: str = "a") -> Pass:
    return await line.enter(agent, 100, 1000)


async def settle() -> None:
    """Lets everything that can run, run."""
    for _ in range(5):
        await asyncio.sleep(0)


def run(work: Coroutine[Any, Any, None]) -> None:
    run_virtually(work)


def test_everything_goes_until_something_is_lent() -> None:
    async def test() -> None:
        line = WaitingLine()
        passes = [await enter(line) for _ in range(100)]
        assert line.in_use == 100
        for each in passes:
            line.end(each, 10)
        assert line.in_use == 0
        assert line.permits is None

    run(test())


def test_agents_take_turns_and_keep_their_own_order() -> None:
    async def test() -> None:
        line = WaitingLine()
        line.lend(Loan(permits=1))
        order: list[str] = []

        async def ask(agent: str, number: int) -> None:
            passed = await enter(line, agent)
            order.append(f"{agent}{number}")
            await asyncio.sleep(1.0)
            line.end(passed, 10)

        first = await enter(line, "z")
        async with asyncio.TaskGroup() as group:
            for agent, count in (("a", 4), ("b", 2)):
                for number in range(count):
                    group.create_task(ask(agent, number))
            await settle()
            assert line.waiting == 6
            line.end(first, 10)
        assert order == ["a0", "b0", "a1", "b1", "a2", "a3"]

    run(test())


def test_a_cancelled_wait_frees_its_place_and_a_granted_one_its_permit() -> None:
    async def test() -> None:
        line = WaitingLine()
        line.lend(Loan(permits=1))
        first = await enter(line)
        waiting = [asyncio.create_task(enter(line, f"w{n}")) for n in range(3)]
        await settle()
        waiting[0].cancel()
        await settle()
        assert line.waiting == 2
        # Granted and cancelled in one turn of the loop: the next one gets it.
        line.end(first, None)
        waiting[1].cancel()
        await settle()
        assert (line.waiting, line.in_use) == (0, 1)
        line.end(await waiting[2], None)
        assert line.in_use == 0
        with pytest.raises(asyncio.CancelledError):
            await waiting[1]

    run(test())


def test_a_refusal_holds_everything_back_for_as_long_as_it_says() -> None:
    async def test() -> None:
        told: list[float] = []
        line = WaitingLine(lambda: told.append(now()))
        line.lend(Loan(permits=9))
        passed = await enter(line)
        start = now()
        line.refused(passed, 7.0)
        line.end(passed, 0)
        assert told == [start]
        line.end(await enter(line), 0)
        assert now() - start == pytest.approx(7.0, abs=0.01)
        news = line.news()
        assert (news.refused, news.refused_in_round, news.asked_to_wait) == (1, 1, True)

    run(test())


def test_a_wrong_date_does_not_hold_for_ever() -> None:
    async def test() -> None:
        line = WaitingLine()
        line.lend(Loan(permits=9))
        start = now()
        line.refused(await enter(line), 1e9)
        await enter(line)
        assert now() - start == pytest.approx(LONGEST_HOLD_S, abs=1.0)

    run(test())


def test_without_a_word_each_refusal_holds_twice_as_long_until_one_passes() -> None:
    async def test() -> None:
        line = WaitingLine()
        line.lend(Loan(permits=9))
        waits = []
        for _ in range(5):
            start = now()
            passed = await enter(line)
            waits.append(round(now() - start, 1))
            line.refused(passed, None)
            line.end(passed, 0)
        # What tries whether it is over goes one by one, two seconds apart at least.
        assert waits == [0.0, 0.5, 2.0, 2.0, 4.0]
        passed = await enter(line)
        line.answered(passed, ok=True)
        line.end(passed, 10)
        passed = await enter(line)
        line.refused(passed, None)
        start = now()
        await enter(line)
        assert now() - start == pytest.approx(0.5, abs=0.01)

    run(test())


def test_many_refusals_of_one_moment_are_one_step_back() -> None:
    async def test() -> None:
        line = WaitingLine()
        line.lend(Loan(permits=50))
        for passed in [await enter(line) for _ in range(50)]:
            line.refused(passed, None)
        assert line.news().hold_s == pytest.approx(0.5)
        assert line.news().in_use_when_refused == 50

    run(test())


def test_a_wait_of_no_time_is_no_word() -> None:
    async def test() -> None:
        line = WaitingLine()
        line.lend(Loan(permits=9, round=1))
        line.refused(await enter(line), 0.0)
        news = line.news()
        assert (news.hold_s, news.asked_to_wait) == (pytest.approx(0.5), False)

    run(test())


def test_refusals_of_an_earlier_round_are_told_apart() -> None:
    async def test() -> None:
        line = WaitingLine()
        line.lend(Loan(permits=9, round=1))
        early = [await enter(line) for _ in range(3)]
        line.refused(early[0], 0.0)
        assert line.news().refused_in_round == 1
        line.lend(Loan(permits=9, round=2))
        line.refused(early[1], 0.0)
        assert line.news().refused_in_round == 0
        assert line.news().refused == 2

    run(test())


def test_what_another_node_was_refused_holds_here_and_is_not_told_back() -> None:
    async def test() -> None:
        line = WaitingLine()
        line.lend(Loan(permits=9, hold_s=3.0))
        assert line.news().hold_s == 0.0
        start = now()
        await enter(line)
        assert now() - start == pytest.approx(3.0, abs=0.01)

    run(test())


def test_a_smaller_loan_takes_nothing_from_what_is_under_way() -> None:
    async def test() -> None:
        line = WaitingLine()
        line.lend(Loan(permits=3))
        passes = [await enter(line) for _ in range(3)]
        line.lend(Loan(permits=1))
        waiting = asyncio.create_task(enter(line))
        line.end(passes[0], 1)
        line.end(passes[1], 1)
        await settle()
        assert not waiting.done()
        line.end(passes[2], 1)
        await settle()
        assert waiting.done()

    run(test())


def test_nothing_lent_is_nothing_sent_until_more_is() -> None:
    async def test() -> None:
        line = WaitingLine()
        line.lend(Loan(permits=0))
        waiting = asyncio.create_task(enter(line))
        await asyncio.sleep(100.0)
        assert not waiting.done()
        line.lend(Loan(permits=1))
        await settle()
        assert waiting.done()

    run(test())


def test_the_pace_counts_requests_and_tokens_as_they_turn_out() -> None:
    async def test() -> None:
        line = WaitingLine()
        line.lend(Loan(permits=99, requests_per_s=2.0))
        start = now()
        for _ in range(22):
            line.end(await enter(line), 10)
        # Two at once, then two a second.
        assert now() - start == pytest.approx(10.0, abs=0.1)

        line = WaitingLine()
        line.lend(Loan(permits=99, tokens_per_s=1000.0))
        start = now()
        for _ in range(11):
            line.end(await enter(line), 2000)
        assert now() - start == pytest.approx(19.0, abs=2.1)

    run(test())
