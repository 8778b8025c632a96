from __future__ import annotations

import asyncio
import time

from workers.container.pace import StartPace


def test_starts_are_spread_after_the_first_two() -> None:
    pace = StartPace(per_s=4.0, clock=lambda: 100.0)
    assert [pace.reserve() for _ in range(5)] == [0.0, 0.25, 0.5, 0.75, 1.0]


def test_a_pause_allows_a_burst_and_no_more() -> None:
    now = [100.0]
    pace = StartPace(per_s=4.0, burst=3, clock=lambda: now[0])
    now[0] = 1000.0
    assert [pace.reserve() for _ in range(5)] == [0.0, 0.0, 0.0, 0.25, 0.5]


def test_four_hundred_at_once_get_their_turns_at_the_rate() -> None:
    pace = StartPace(per_s=3.0, clock=lambda: 0.0)
    turns = [pace.reserve() for _ in range(400)]
    for begin in range(0, 130, 10):
        assert sum(begin <= turn < begin + 1 for turn in turns) <= 4


def test_a_turn_is_waited_for() -> None:
    async def start(pace: StartPace) -> None:
        async with pace.turn():
            pass

    async def scenario() -> float:
        pace = StartPace(per_s=50.0, burst=1)
        began = time.monotonic()
        await asyncio.gather(*(start(pace) for _ in range(4)))
        return time.monotonic() - began

    assert asyncio.run(scenario()) >= 3 / 50.0


def test_no_more_than_so_many_start_at_once_and_all_do_in_the_order_in_which_they_came() -> None:
    async def scenario() -> tuple[int, list[int]]:
        pace = StartPace(at_once=3)
        inside, most, done = 0, 0, []

        async def start(number: int) -> None:
            nonlocal inside, most
            async with pace.turn():
                inside += 1
                most = max(most, inside)
                await asyncio.sleep(0)
                inside -= 1
                done.append(number)

        await asyncio.gather(*(start(number) for number in range(20)))
        return most, done

    assert asyncio.run(scenario()) == (3, list(range(20)))


def test_a_start_that_fails_or_is_cancelled_gives_its_turn_back() -> None:
    async def scenario() -> bool:
        pace = StartPace(at_once=1)

        async def hang() -> None:
            async with pace.turn():
                await asyncio.Event().wait()

        hanging = asyncio.ensure_future(hang())
        waiting = asyncio.ensure_future(hang())
        await asyncio.sleep(0)
        waiting.cancel()
        hanging.cancel()
        await asyncio.gather(hanging, waiting, return_exceptions=True)
        async with asyncio.timeout(5.0), pace.turn():
            return True

    assert asyncio.run(scenario())
