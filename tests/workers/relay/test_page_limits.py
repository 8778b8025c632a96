"""How many events a request gives at most, and where its next page begins (§1.10)."""

from __future__ import annotations

import functools
from typing import Any

import pytest

from tests.workers.relay.builders import NOW, World
from workers.nostr.event import Event

COUNT = 1010


@functools.cache
def full_world() -> tuple[World, str, Event]:
    """A thread of more messages than any page holds; every one mentions the agent."""
    world = World()
    channel = world.channel(world.agent)
    root = world.message(world.user, channel, "word root")
    tags = [["h", channel], ["e", root.id, "", "reply"], ["p", world.agent.pubkey]]
    flat = [["h", channel], ["p", world.agent.pubkey]]
    for number in range(COUNT):
        event = world.sign(
            world.user, 9, tags if number % 2 else flat, f"word {number}", NOW + number % 300
        )
        assert world.core.submit(event, world.user.pubkey, over_http=True).accepted
    return world, channel, root


def counted(extra: dict[str, Any], limit: int | None) -> int:
    world, channel, root = full_world()
    wanted: dict[str, Any] = {"kinds": [9], "#h": [channel], **extra}
    if "depth_limit" in wanted:
        wanted["#e"] = [root.id]
    if "feed_types" in wanted:
        wanted["#p"] = [world.agent.pubkey]
    if limit is not None:
        wanted["limit"] = limit
    return len(world.query(world.agent, wanted))


@pytest.mark.parametrize(
    ("extra", "default", "cap"),
    [
        ({}, 1000, 1000),
        ({"top_level": True}, 50, 200),
        ({"feed_types": ["mentions"]}, 20, 100),
        ({"depth_limit": 3}, 100, 500),
        ({"search": "word"}, 100, 500),
    ],
    ids=["general", "channel window", "feed", "thread", "search"],
)
def test_1_10_each_group_has_its_default_and_its_cap(
    extra: dict[str, Any], default: int, cap: int
) -> None:
    assert counted(extra, None) == default
    assert counted(extra, 7) == 7
    assert counted(extra, 10**6) == cap


def test_1_10_a_cursor_is_strict_and_pages_join_without_a_seam() -> None:
    world, channel, _ = full_world()
    wanted = {"kinds": [9], "#h": [channel], "limit": 500}
    first = world.query(world.agent, wanted)
    last = first[-1]
    second = world.query(world.agent, {**wanted, "until": last.created_at, "before_id": last.id})
    assert last not in second
    assert first + second == world.query(world.agent, {**wanted, "limit": 1000})


def test_1_10_without_the_id_a_cursor_repeats_the_second_it_stands_in() -> None:
    world, channel, _ = full_world()
    wanted = {"kinds": [9], "#h": [channel], "limit": 500}
    last = world.query(world.agent, wanted)[-1]
    assert last in world.query(world.agent, {**wanted, "until": last.created_at})


def test_1_10_search_pages_by_number() -> None:
    world, channel, _ = full_world()
    wanted = {"kinds": [9], "#h": [channel], "search": "word", "limit": 10}
    pages = [
        event.id
        for number in (1, 2)
        for event in world.query(world.agent, {**wanted, "search_page": number})
    ]
    assert pages == [event.id for event in world.query(world.agent, {**wanted, "limit": 20})]


def test_1_10_a_thread_goes_on_after_its_cursor() -> None:
    world, channel, root = full_world()
    wanted = {"kinds": [9], "#h": [channel], "#e": [root.id], "depth_limit": 1, "limit": 100}
    first = world.query(world.agent, wanted)
    cursor = {"thread_cursor": first[-1].created_at, "thread_cursor_id": first[-1].id}
    second = world.query(world.agent, {**wanted, **cursor})
    assert first + second == world.query(world.agent, {**wanted, "limit": 200})


def test_1_10_a_window_goes_on_before_its_cursor() -> None:
    world, channel, _ = full_world()
    wanted = {"kinds": [9], "#h": [channel], "top_level": True}
    last = world.query(world.agent, wanted)[-1]
    following = world.query(world.agent, {**wanted, "until": last.created_at, "before_id": last.id})
    assert len(following) == 50
    assert last not in following
