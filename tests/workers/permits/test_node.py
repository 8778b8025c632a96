"""All lines of a node."""

from __future__ import annotations

import asyncio

import pytest

from tests.scheduler.permits.virtual import run_virtually
from tests.scheduler.permits.world import endpoint
from workers.contract.endpoint import Endpoint
from workers.contract.permits import Loan
from workers.permits.node import NodePermits

OWN = Endpoint.model_validate({"provider": "scripted"})
ACCOUNT = endpoint().account or ""


def known() -> NodePermits:
    permits = NodePermits()
    permits.know(
        {"a": endpoint(), "b": endpoint(model="x"), "c": endpoint(api_key_env="L"), "own": OWN}
    )
    return permits


def test_endpoints_of_one_account_share_its_permits() -> None:
    async def test() -> None:
        permits = known()
        permits.lend({ACCOUNT: Loan(permits=1)})
        assert [permits.permits(name) for name in ("a", "b", "c", "own")] == [1, 1, 0, 0]
        async with permits.admit("a", "x", 1, 1):
            async with permits.admit("c", "x", 1, 1), permits.admit("own", "x", 1, 1):
                pass
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(5.0), permits.admit("b", "y", 1, 1):
                    pass
        async with permits.admit("b", "y", 1, 1):
            pass

    run_virtually(test())


def test_what_a_request_shows_is_told_by_account_and_by_endpoint() -> None:
    async def test() -> None:
        permits = known()
        permits.lend({ACCOUNT: Loan(permits=9)})
        for name, status in (("a", 200), ("a", 503), ("b", None), ("b", 400), ("b", 429)):
            async with permits.admit(name, "x", 1, 1) as admission:
                admission.answered(status, [("Retry-After", "0")])
                admission.used(10, 10)
        (news,) = permits.accounts().values()
        assert (news.started, news.ok, news.failed, news.refused) == (5, 1, 2, 1)
        assert news.in_use == 0
        assert permits.endpoints()["a"].failures == 1
        assert permits.endpoints()["b"].failures == 1
        assert permits.limited() == ("a", "b", "c")

    run_virtually(test())


def test_a_node_that_serves_an_endpoint_itself_lends_nothing() -> None:
    async def test() -> None:
        permits = known()
        async with permits.admit("own", "x", 1, 1) as admission:
            admission.answered(500, [])
            admission.used(1, 1)
        assert permits.accounts() == {}
        assert permits.endpoints() == {}

    run_virtually(test())


def test_an_agent_that_goes_away_shows_nothing_of_the_provider() -> None:
    async def test() -> None:
        permits = known()
        permits.lend({ACCOUNT: Loan(permits=1)})

        async def ask() -> None:
            async with permits.admit("a", "x", 1, 1):
                await asyncio.sleep(100.0)

        tasks = [asyncio.create_task(ask()) for _ in range(3)]
        await asyncio.sleep(1.0)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        (news,) = permits.accounts().values()
        assert (news.in_use, news.waiting, news.failed, news.refused) == (0, 0, 0, 0)
        assert permits.endpoints()["a"].failures == 0

    run_virtually(test())
