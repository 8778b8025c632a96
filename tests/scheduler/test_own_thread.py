"""A thread of one's own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import TypeVar

import pytest

from scheduler.own_thread import OwnThread

T = TypeVar("T")


def test_calls_are_made_in_one_thread_in_order() -> None:
    async def test() -> list[tuple[int, int]]:
        thread = OwnThread("test")
        calls: list[Callable[[], tuple[int, int]]] = [
            lambda n=n: (n, threading.get_ident())
            for n in range(5)  # type: ignore[misc]
        ]
        found = await asyncio.gather(*(thread.call(call, 5.0) for call in calls))
        thread.end()
        return list(found)

    found = asyncio.run(test())
    assert [n for n, _ in found] == [0, 1, 2, 3, 4]
    assert len({ident for _, ident in found}) == 1
    assert found[0][1] != threading.get_ident()


def test_what_a_call_raises_is_raised_where_it_is_awaited() -> None:
    def broken() -> None:
        raise ZeroDivisionError

    async def test() -> str:
        thread = OwnThread("test")
        with pytest.raises(ZeroDivisionError):
            await thread.call(broken, 5.0)
        again = await thread.call(lambda: "again", 5.0)
        thread.end()
        return again

    assert asyncio.run(test()) == "again"


def test_a_call_that_hangs_is_not_waited_for() -> None:
    let_go = threading.Event()

    async def test() -> None:
        thread = OwnThread("test")
        with pytest.raises(TimeoutError):
            await thread.call(lambda: let_go.wait(10.0), 0.05)
        let_go.set()
        assert await thread.call(lambda: 1, 5.0) == 1
        thread.end()

    asyncio.run(test())


def test_an_answer_that_nobody_waits_for_any_more_harms_nothing() -> None:
    let_go, over = threading.Event(), threading.Event()

    async def test() -> OwnThread:
        thread = OwnThread("test")
        with pytest.raises(TimeoutError):
            await thread.call(lambda: let_go.wait(10.0), 0.01)
        return thread

    thread = asyncio.run(test())
    let_go.set()

    async def after() -> None:
        await thread.call(over.set, 5.0)

    asyncio.run(after())
    assert over.is_set()
    thread.end()
