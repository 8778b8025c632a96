"""A relay from its own events: the same to everybody, and nothing slipped in."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from tests.workers.relay.builders import NOW, World
from tests.workers.relay.fuzzing.messages import Messages
from tests.workers.relay.fuzzing.stage import Stage
from workers.nostr.event import Event
from workers.nostr.keys import Keypair
from workers.relay import kinds
from workers.relay.event_file import EventFile, EventFileError


def again(world: World, events: list[Event]) -> tuple[World, list[tuple[Event, str]]]:
    """Another relay of the same owner and people, with these events."""
    twin = World(
        clock=world.clock,
        owner=world.owner,
        user=world.user,
        agent=world.agent,
        other=world.other,
    )
    return twin, twin.core.restore(events)


def what_is_seen(world: World, caller: Keypair) -> list[Any]:
    """All that a key reads, and who is in which channel; the relay's own signatures aside."""
    wanted = {"kinds": sorted(kinds.KNOWN - {44200, 1059, 24200})}
    plain = [event.id for event in world.stored(caller, wanted)]
    groups = {event.tags for event in world.stored(caller, {"kinds": [39000, 39001, 39002]})}
    return [plain, groups]


def test_a_replayed_relay_shows_everybody_the_same() -> None:
    world = World()
    channel = world.channel(world.agent, ttl="3600")
    root = world.message(world.user, channel, "root")
    world.clock.now += 5
    reply = world.message(world.agent, channel, "reply", ["e", root.id, "", "reply"])
    world.accept(world.user, 7, [["e", reply.id]], "+")
    world.accept(world.agent, 5, [["e", reply.id]])
    world.accept(world.user, 0, (), '{"name":"x"}')
    world.accept(world.user, 9007, [["name", "without an id"]])
    world.submit(world.user, 41010, [["p", world.agent.pubkey]])
    world.accept(world.user, 9000, [["h", channel], ["p", world.other.pubkey]])
    world.accept(world.user, 9001, [["h", channel], ["p", world.agent.pubkey]])
    twin, refused = again(world, world.state.store.timeline())
    assert refused == []
    for caller in (world.user, world.agent, world.other, world.owner):
        assert what_is_seen(twin, caller) == what_is_seen(world, caller)
    assert twin.clock() == world.clock()
    world.clock.now += 4000
    assert twin.submit(world.user, 9, [["h", channel]]).message == "invalid: channel is archived"


def test_any_relay_is_replayed_whole() -> None:
    stage = Stage(random.Random(3))
    made = Messages(stage, random.Random(4))
    for _ in range(600):
        line = stage.lines[made.chance.randrange(4)]
        event = made.event(line)
        if stage.world.core.submit(event, event.pubkey, over_http=False).accepted:
            stage.events.append(event)
    world = stage.world
    twin, refused = again(world, world.state.store.timeline())
    assert refused == []
    for caller in stage.people:
        assert what_is_seen(twin, caller)[0] == what_is_seen(world, caller)[0]


def test_forged_events_are_refused_and_the_clock_is_ours_again() -> None:
    world = World()
    good = world.sign(world.user, 0, (), "{}", NOW - 10**6)
    forged = Event.from_dict({**good.to_dict(), "content": '{"name":"x"}'})
    twin, refused = again(world, [forged, good])
    assert [event for event, _ in refused] == [forged]
    assert twin.stored(world.agent, {"kinds": [0]}) == [good]
    answer = twin.core.submit(
        world.sign(world.agent, 0, (), "{}", NOW - 10**6), world.agent.pubkey, over_http=True
    )
    assert answer.message == "invalid: event timestamp too far from server time"


def test_a_file_gives_back_what_it_was_given(tmp_path: Path) -> None:
    world = World()
    path = tmp_path / "events.jsonl"
    events = [world.sign(world.user, 0, (), json.dumps({"n": number})) for number in range(3)]
    with EventFile(path) as file:
        assert file.read() == []
        file.append(events[0])
        file.append(events[1])
    with EventFile(path) as file:
        assert file.read() == events[:2]
        file.append(events[2])
        assert file.read() == events


def test_a_line_that_was_never_finished_is_cut_off(tmp_path: Path) -> None:
    world = World()
    path = tmp_path / "events.jsonl"
    one, two = (world.sign(world.user, 0, (), text) for text in ("{}", '{"n":1}'))
    path.write_text(one.to_json() + "\n\n" + two.to_json()[:50])
    with EventFile(path) as file:
        assert file.read() == [one]
        file.append(two)
        assert file.read() == [one, two]


@pytest.mark.parametrize("line", ["junk", "[]", '{"id":"x"}', "\ufffd"])
def test_a_line_that_is_no_event_is_named(tmp_path: Path, line: str) -> None:
    path = tmp_path / "events.jsonl"
    path.write_text(World().sign(Keypair.generate(), 0, (), "{}").to_json() + f"\n{line}\n")
    with EventFile(path) as file, pytest.raises(EventFileError, match=r"events\.jsonl:2: "):
        file.read()


def test_a_file_that_cannot_be_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(EventFileError, match="No such file"), EventFile(tmp_path / "no" / "file"):
        pass
    with pytest.raises(EventFileError, match="not open"):
        EventFile(tmp_path / "file").read()
