from __future__ import annotations

import asyncio
import time

from workers.container.pace import StartPace


def test_starts_are_spread_after_the_first_two() -> None:
    pace = StartPace(4.0, clock=lambda: 100.0)
    assert [pace.reserve() for _ in range(5)] == [0.0, 0.25, 0.5, 0.75, 1.0]


def test_a_pause_allows_a_burst_and_no_more() -> None:
    now = [100.0]
    pace = StartPace(4.0, burst=3, clock=lambda: now[0])
    now[0] = 1000.0
    assert [pace.reserve() for _ in range(5)] == [0.0, 0.0, 0.0, 0.25, 0.5]


def test_four_hundred_at_once_get_their_turns_at_the_rate() -> None:
    pace = StartPace(3.0, clock=lambda: 0.0)
    turns = [pace.reserve() for _ in range(400)]
    for begin in range(0, 130, 10):
        assert sum(begin <= turn < begin + 1 for turn in turns) <= 4


def test_a_turn_is_waited_for() -> None:
    async def scenario() -> float:
        pace = StartPace(50.0, burst=1)
        began = time.monotonic()
        await asyncio.gather(*(pace.turn() for _ in range(4)))
        return time.monotonic() - began

    assert asyncio.run(scenario()) >= 3 / 50.0
