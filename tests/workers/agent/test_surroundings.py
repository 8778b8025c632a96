from __future__ import annotations

import pytest

from tests.workers.agent.worlds import World
from workers.agent import surroundings
from workers.agent.bridge import Bridge
from workers.agent.prompt import Channel, Profile
from workers.nostr.event import Event


def bridge_of(world: World) -> Bridge:
    return Bridge(f"http://{world.host}", world.agent.identity())


@pytest.fixture
def nowhere(world: World) -> Bridge:
    return Bridge("http://127.0.0.1:1", world.agent.identity(), sleep=lambda _: None)


def test_a_channel_and_the_profiles_of_all_involved(world: World) -> None:
    bridge = bridge_of(world)
    channel = surroundings.describe_channel(bridge, world.channel)
    assert channel == Channel(world.channel, "trial", "a trial")
    task = world.run(
        world.user.client.send_message(world.channel, "do", mentions=[world.agent.pubkey])
    )
    around = surroundings.gather(bridge, channel, [task])
    assert around.profiles == {
        world.user.pubkey: Profile("Jane Q. Doe", is_agent=True),
        world.agent.pubkey: Profile("solo-1", is_agent=True),
    }
    assert around.thread == ()


def test_the_thread_of_the_trigger_oldest_first_without_the_trigger(world: World) -> None:
    bot = world.party("Scout")
    world.join(bot)
    root = world.run(bot.client.send_message(world.channel, "root"))
    first = world.run(bot.client.send_message(world.channel, "first", reply_to=root))
    trigger = world.run(world.user.client.send_message(world.channel, "you", reply_to=first))
    around = surroundings.gather(bridge_of(world), Channel(world.channel), [trigger])
    assert {event.id for event in around.thread} == {root.id, first.id}
    assert around.profiles[bot.pubkey].name == "Scout"


def test_only_new_faces_are_asked_for(world: World, nowhere: Bridge) -> None:
    bridge = bridge_of(world)
    task = world.run(world.user.client.send_message(world.channel, "do"))
    around = surroundings.gather(bridge, Channel(world.channel), [task])
    again = world.run(world.user.client.send_message(world.channel, "more"))
    assert surroundings.more_profiles(nowhere, around, [again]) is around
    bot = world.party("Scout")
    world.join(bot)
    report = world.run(bot.client.send_message(world.channel, "report"))
    more = surroundings.more_profiles(bridge, around, [report])
    assert set(more.profiles) == {world.user.pubkey, bot.pubkey}


def test_a_silent_relay_costs_only_knowledge(
    world: World, nowhere: Bridge, capsys: pytest.CaptureFixture[str]
) -> None:
    channel = surroundings.describe_channel(nowhere, world.channel)
    assert channel == Channel(world.channel)
    root = world.run(world.user.client.send_message(world.channel, "root"))
    reply = world.run(world.user.client.send_message(world.channel, "re", reply_to=root))
    around = surroundings.gather(nowhere, channel, [reply])
    assert (around.profiles, around.thread) == ({}, ())
    assert capsys.readouterr().out.count("no ") >= 3


def test_archived_channels_are_not_discovered(world: World) -> None:
    other = world.run(world.user.client.create_channel("other"))
    world.run(world.user.client.add_member(other, world.agent.pubkey))
    found = surroundings.discover(bridge_of(world), world.agent.pubkey)
    assert set(found) == {world.channel, other}
    world.run(world.user.client.archive(other))
    assert surroundings.discover(bridge_of(world), world.agent.pubkey) == [world.channel]


@pytest.mark.parametrize(
    ("content", "name"),
    [
        ('{"display_name": "A", "name": "B"}', "A"),
        ('{"name": "B"}', "B"),
        ('{"display_name": null, "name": "B"}', ""),
        ('{"display_name": 5}', ""),
        ("[]", ""),
        ("nonsense", ""),
        ("[" * 100_000, ""),
    ],
)
def test_a_profile_s_name(content: str, name: str) -> None:
    event = Event("0" * 64, "a" * 64, 1, 0, (), content, "0" * 128)
    assert surroundings.read_profile(event) == Profile(name, is_agent=False)
