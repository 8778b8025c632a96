from __future__ import annotations

import asyncio
import threading

import pytest

from workers.container.calls import Calls, CallTimeoutError, Deadline


def test_a_deadline_runs_out() -> None:
    assert 0 < Deadline("wait", 60).left_s() <= 60
    past = Deadline("feed the bees", 0)
    assert past.passed()
    with pytest.raises(CallTimeoutError, match="feed the bees: not done within 0 s"):
        past.left_s()


def test_a_call_gives_its_result_or_its_error() -> None:
    def fails(_: Deadline) -> None:
        raise KeyError("mine")

    async def scenario() -> None:
        calls = Calls(2)
        assert await calls.run(Deadline("add", 10), lambda d: d.what + "ed") == "added"
        with pytest.raises(KeyError, match="mine"):
            await calls.run(Deadline("fail", 10), fails)
        await calls.close()

    asyncio.run(scenario())


def test_at_most_so_many_calls_run_at_once() -> None:
    meet = threading.Barrier(3)

    async def scenario() -> None:
        calls = Calls(2)
        three = [calls.run(Deadline("meet", 0.2), lambda d: meet.wait(d.left_s())) for _ in "abc"]
        ends = await asyncio.gather(*three, return_exceptions=True)
        assert {type(end) for end in ends} <= {threading.BrokenBarrierError, CallTimeoutError}
        await calls.close()

    asyncio.run(scenario())


def test_a_call_that_waited_too_long_for_a_thread_does_not_begin() -> None:
    release = threading.Event()
    begun = []

    async def scenario() -> None:
        calls = Calls(1)
        hold = Deadline("hold", 30)
        first = calls.submit(hold, lambda _: release.wait(30))
        with pytest.raises(CallTimeoutError, match="begin"):
            await calls.run(Deadline("begin", 0.01), begun.append)
        release.set()
        assert await calls.wait(first, hold)
        await calls.run(Deadline("flush", 30), lambda _: None)
        await calls.close()

    asyncio.run(scenario())
    assert begun == []


def test_a_cancelled_caller_leaves_a_running_call_to_end() -> None:
    begun, release, ended = threading.Event(), threading.Event(), threading.Event()

    def work(_: Deadline) -> None:
        begun.set()
        release.wait(30)
        ended.set()

    async def scenario() -> None:
        calls = Calls(1)
        task = asyncio.create_task(calls.run(Deadline("work", 30), work))
        await asyncio.to_thread(begun.wait, 30)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        release.set()
        assert await asyncio.to_thread(ended.wait, 30)
        await calls.close()

    asyncio.run(scenario())
