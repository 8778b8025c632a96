"""Waiting for events, single use of authentications, activity."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from tests.workers.relay.builders import World
from workers.nostr.event import Event
from workers.relay.core import RelayCore


def says(text: str) -> Callable[[Event], bool]:
    return lambda event: event.content == text


def test_an_event_is_found_in_the_past_in_the_future_or_not_at_all() -> None:
    async def scenario() -> None:
        world = World()
        channel = world.channel()
        first = world.message(world.user, channel, "first")
        assert await world.core.wait_event(lambda event: event.kind == 9, 0) == first
        waiting = [
            asyncio.create_task(world.core.wait_event(says(text), 5))
            for text in ("second", "third")
        ]
        await asyncio.sleep(0)
        second = world.message(world.user, channel, "second")
        third = world.message(world.user, channel, "third")
        assert await asyncio.gather(*waiting) == [second, third]
        assert await world.core.wait_event(lambda event: False, 0.01) is None

    asyncio.run(scenario())


def test_waiting_also_sees_what_the_relay_signs() -> None:
    async def scenario() -> None:
        world = World()

        def accept(event: Event) -> bool:
            return event.kind == 44100 and event.tags[0] == ("p", world.agent.pubkey)

        waiting = asyncio.create_task(world.core.wait_event(accept, 5))
        await asyncio.sleep(0)
        world.channel(world.agent)
        found = await waiting
        assert found is not None
        assert found.pubkey == world.state.keypair.pubkey

    asyncio.run(scenario())


def test_1_8_claims_are_single_and_are_forgotten_in_time() -> None:
    world = World()
    assert world.core.claim_auth("a")
    assert not world.core.claim_auth("a")
    world.clock.now += 60
    assert world.core.claim_auth("b")
    world.clock.now += 60
    assert world.core.claim_auth("a")
    assert not world.core.claim_auth("b")


def test_activity_moves_with_every_event() -> None:
    world = World()
    before = world.core.last_activity()
    world.channel()
    assert world.core.last_activity() > before


def test_every_submission_is_observed_by_kind_and_outcome() -> None:
    seen: list[tuple[int | None, bool]] = []
    world = World()
    world.core = RelayCore(world.state, lambda kind, accepted: seen.append((kind, accepted)))
    channel = world.channel()
    world.message(world.user, channel)
    world.submit(world.other, 9, [["h", channel]])
    world.submit(world.user, 12345)
    assert seen == [(9007, True), (9, True), (9, False), (None, False)]
