"""Waiting for a subscription that a mention would reach."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from workers.nostr.filters import Filter
from workers.relay.groups import Groups
from workers.relay.hub import Hub, Subscription

ME, YOU = "a" * 64, "b" * 64


def subscription(*filters: dict[str, Any], channels: frozenset[str] | None) -> Subscription:
    parsed = tuple(Filter.from_dict(data) for data in filters)
    return Subscription(ME, parsed, channels, lambda stored: None, lambda reason: None)


@pytest.mark.parametrize(
    ("wanted", "wakes"),
    [
        ({"kinds": [9, 46010, 40007], "#h": ["x"], "#p": [ME]}, True),
        ({"#h": ["x"], "#p": [ME]}, True),
        ({"kinds": [9], "#h": ["x"]}, True),
        ({"kinds": [9], "#h": ["x"], "#p": [YOU]}, False),
        ({"kinds": [7], "#h": ["x"], "#p": [ME]}, False),
        ({"kinds": [9], "#h": ["y"], "#p": [ME]}, False),
    ],
)
def test_what_wakes_on_a_mention(wanted: dict[str, Any], wakes: bool) -> None:
    held = subscription(wanted, channels=frozenset("xy"))
    assert held.wakes_on_mention("x") is wakes


def test_a_global_subscription_does_not() -> None:
    assert not subscription({"kinds": [9], "#p": [ME]}, channels=None).wakes_on_mention("x")


def test_a_scope_without_the_channel_does_not() -> None:
    held = subscription({"kinds": [9], "#h": ["x", "y"]}, channels=frozenset("y"))
    assert not held.wakes_on_mention("x")


def test_waiting_sees_what_is_there_and_what_comes_and_gives_up_in_time() -> None:
    async def scenario() -> None:
        hub = Hub(Groups())
        held = subscription({"kinds": [9], "#h": ["x"]}, channels=frozenset("x"))
        assert not await hub.wait(lambda one: True, 0)
        waiting = [asyncio.create_task(hub.wait(lambda one: one is held, 5)) for _ in range(2)]
        await asyncio.sleep(0)
        hub.add(subscription({"kinds": [9], "#h": ["y"]}, channels=frozenset("y")))
        hub.add(held)
        assert await asyncio.gather(*waiting) == [True, True]
        assert await hub.wait(lambda one: one is held, 0)
        hub.remove(held)
        hub.remove(held)
        assert not await hub.wait(lambda one: one is held, 0)

    asyncio.run(scenario())
