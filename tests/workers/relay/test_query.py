"""Stored events: order, paging, scope, and the extensions of ``POST /query`` (§1.10)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.workers.relay.builders import World
from workers.nostr.errors import FilterError
from workers.nostr.event import Event
from workers.relay.query import BridgeFilter


def contents(events: list[Event]) -> list[str]:
    return [event.content for event in events]


def spread(world: World, channel: str, count: int, step: int = 0) -> list[Event]:
    """Messages whose time moves by ``step`` each."""
    found = []
    for number in range(count):
        found.append(world.message(world.user, channel, str(number)))
        world.clock.now += step
    return found


def test_1_5_newest_first_then_lowest_id() -> None:
    world = World()
    channel = world.channel()
    messages = spread(world, channel, 5) + spread(world, channel, 0)
    world.clock.now += 1
    late = world.message(world.user, channel, "late")
    found = world.stored(world.user, {"kinds": [9]})
    assert found == [late, *sorted(messages, key=lambda event: event.id)]


def test_1_5_limits() -> None:
    world = World()
    channel = world.channel()
    spread(world, channel, 4, 1)
    assert contents(world.stored(world.user, {"kinds": [9], "limit": 2})) == ["3", "2"]
    assert world.stored(world.user, {"kinds": [9], "limit": 0}) == []
    assert len(world.stored(world.user, {"kinds": [9], "limit": 10**9})) == 4
    assert world.stored(world.user, {"kinds": []}) == []


def test_1_5_since_and_until_are_inclusive() -> None:
    world = World()
    moment = int(world.clock())
    spread(world, world.channel(), 3, 1)
    wanted = {"kinds": [9], "since": moment + 1, "until": moment + 1}
    assert contents(world.stored(world.user, wanted)) == ["1"]


def test_trap_11_unreadable_channels_are_empty() -> None:
    world = World()
    channel = world.channel()
    world.message(world.user, channel)
    for wanted in ({"kinds": [9], "#h": [channel]}, {"kinds": [9]}, {"kinds": [39000, 39002]}):
        assert world.query(world.other, wanted) == []


def test_trap_8_rosters_are_found_by_member() -> None:
    world = World()
    channel = world.channel(world.agent, world.other)
    for pair in (world.user, world.agent, world.other):
        (roster,) = world.query(pair, {"kinds": [39002], "#p": [pair.pubkey]})
        assert roster.tags[0] == ("d", channel)


def test_trap_7_notifications_are_found_without_a_channel() -> None:
    world = World()
    channel = world.channel(world.agent)
    wanted = {"kinds": [44100], "#p": [world.agent.pubkey]}
    (notice,) = world.query(world.agent, wanted)
    assert ("h", channel) in notice.tags


def test_trap_9_general_filters_are_not_de_duplicated() -> None:
    world = World()
    channel = world.channel()
    message = world.message(world.user, channel)
    wanted = {"kinds": [9], "#h": [channel]}
    assert world.query(world.user, wanted, wanted) == [message, message]


def test_trap_10_paging_with_a_cursor_gives_each_event_once() -> None:
    world = World()
    channel = world.channel()
    spread(world, channel, 7)
    world.clock.now += 1
    spread(world, channel, 6)
    pages: list[Event] = []
    cursor: dict[str, Any] = {}
    while True:
        page = world.query(world.user, {"kinds": [9], "#h": [channel], "limit": 3, **cursor})
        pages += page
        if len(page) < 3:
            break
        cursor = {"until": page[-1].created_at, "before_id": page[-1].id}
    assert len(pages) == len({event.id for event in pages}) == 13
    assert pages == world.query(world.user, {"kinds": [9], "#h": [channel]})


def test_1_10_pages_by_number() -> None:
    world = World()
    channel = world.channel()
    spread(world, channel, 5, 1)
    found = [
        contents(world.query(world.user, {"kinds": [9], "limit": 2, "page": page}))
        for page in (1, 2, 3, 4)
    ]
    assert found == [["4", "3"], ["2", "1"], ["0"], []]


@pytest.mark.parametrize(
    "extra",
    [
        {"before_id": "a" * 64},
        {"before_id": "x", "until": 1},
        {"before_id": 1, "until": 1},
        {"page": 0},
        {"page": "1"},
        {"depth_limit": "1"},
        {"feed_types": "mentions"},
        {"feed_types": [1]},
        {"thread_cursor": "x"},
    ],
)
def test_1_10_a_malformed_extension_is_refused(extra: dict[str, Any]) -> None:
    with pytest.raises(FilterError):
        BridgeFilter.from_dict({"kinds": [9], **extra})


def thread(world: World) -> tuple[str, Event, Event, Event]:
    channel = world.channel()
    root = world.message(world.user, channel, "root")
    world.clock.now += 1
    reply = world.message(world.user, channel, "reply", ["e", root.id, "", "reply"])
    world.clock.now += 1
    marks = (["e", root.id, "", "root"], ["e", reply.id, "", "reply"])
    nested = world.message(world.user, channel, "nested", *marks)
    return channel, root, reply, nested


def test_trap_13_a_thread_is_oldest_first_and_bounded_in_depth() -> None:
    world = World()
    channel, root, reply, nested = thread(world)
    wanted = {"kinds": [9], "#h": [channel], "#e": [root.id]}
    assert world.query(world.user, {**wanted, "depth_limit": 5}) == [reply, nested]
    assert world.query(world.user, {**wanted, "depth_limit": 1}) == [reply]
    cursor = {"thread_cursor": reply.created_at, "thread_cursor_id": reply.id}
    assert world.query(world.user, {**wanted, "depth_limit": 5, **cursor}) == [nested]
    assert world.query(world.user, wanted) == [nested, reply]


def test_1_10_a_channel_window_is_top_level() -> None:
    world = World()
    channel, root, _, _ = thread(world)
    assert world.query(world.user, {"kinds": [9], "#h": [channel], "top_level": True}) == [root]


def test_1_10_windows_come_before_threads_and_threads_before_the_rest() -> None:
    world = World()
    channel, root, reply, _ = thread(world)
    found = world.query(
        world.user,
        {"ids": [root.id]},
        {"kinds": [9], "#h": [channel], "#e": [root.id], "depth_limit": 1},
        {"kinds": [9], "#h": [channel], "top_level": True},
    )
    assert found == [root, reply, root]


def test_1_10_a_feed() -> None:
    world = World()
    channel = world.channel(world.agent)
    plain = world.message(world.agent, channel, "plain")
    world.clock.now += 1
    named = world.message(world.agent, channel, "named", ["p", world.user.pubkey])
    world.message(world.user, channel, "own", ["p", world.user.pubkey])
    me = {"#p": [world.user.pubkey]}
    assert world.query(world.user, {**me, "feed_types": ["mentions"]}) == [named]
    both = world.query(world.user, {**me, "feed_types": ["mentions", "activity"]})
    assert both == [named, plain]
    assert world.query(world.user, {**me, "feed_types": ["agent_activity", "x"]}) == [named, plain]
    assert world.query(world.user, {**me, "feed_types": ["needs_action"]}) == []


def test_1_10_search_covers_profiles_and_messages() -> None:
    world = World()
    channel = world.channel()
    world.accept(world.user, 0, (), '{"display_name":"John Vincent Doe"}')
    once = world.message(world.user, channel, "alpha beta")
    twice = world.message(world.user, channel, "Alpha alpha")
    assert world.query(world.user, {"search": "alpha"}) == [twice, once]
    assert world.query(world.user, {"search": "vincent", "kinds": [9]}) == []
    assert len(world.query(world.other, {"search": "vincent", "kinds": [0]})) == 1
    assert world.query(world.other, {"search": "alpha"}) == []
    assert world.query(world.user, {"search": "alp"}) == []
    assert len(world.query(world.user, {"search": "alp", "search_mode": "prefix"})) == 2
    assert world.query(world.user, {"search": "alpha", "limit": 1, "page": 2}) == [once]


def test_1_10_search_does_not_mix() -> None:
    world = World()
    with pytest.raises(FilterError):
        world.query(world.user, {"search": "x"}, {"kinds": [9]})


def test_1_1_a_count_ignores_limits_and_repetition() -> None:
    world = World()
    channel = world.channel()
    spread(world, channel, 3)
    wanted = BridgeFilter.from_dict({"kinds": [9], "#h": [channel], "limit": 0}).filter
    assert world.core.queries.count([wanted, wanted], world.user.pubkey) == 3
    assert world.core.queries.count([wanted], world.other.pubkey) == 0


@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_the_index_that_is_chosen_never_changes_the_answer(data: st.DataObject) -> None:
    world = World()
    channels = [world.channel(world.agent), world.channel()]
    people = [world.user, world.agent]
    for number in range(data.draw(st.integers(0, 12))):
        author = data.draw(st.sampled_from(people))
        channel = channels[0] if author is world.agent else data.draw(st.sampled_from(channels))
        named = data.draw(st.lists(st.sampled_from(people), max_size=2))
        world.message(author, channel, str(number), *(["p", pair.pubkey] for pair in named))
        world.clock.now += data.draw(st.integers(0, 1))
    wanted = data.draw(
        st.fixed_dictionaries(
            {},
            optional={
                "kinds": st.lists(st.sampled_from([9, 39000, 39002]), max_size=2),
                "authors": st.lists(st.sampled_from([p.pubkey for p in people]), max_size=2),
                "#p": st.lists(st.sampled_from([p.pubkey for p in people]), max_size=2),
                "#h": st.lists(st.sampled_from(channels), max_size=2),
                "#d": st.lists(st.sampled_from(channels), max_size=1),
            },
        )
    )
    caller = data.draw(st.sampled_from([*people, world.other]))
    asked = BridgeFilter.from_dict(wanted).filter
    readable = world.state.groups.readable(caller.pubkey)
    slow = [
        event
        for event in world.state.store.timeline()
        if (held := world.state.store.get(event.id)) is not None
        and asked.matches(event, held.channel)
        and (asked.channels() is None or not readable.isdisjoint(asked.channels() or ()))
        and (held.channel in readable if held.channel else may_see_global(event, caller.pubkey))
    ]
    slow.sort(key=lambda event: (-event.created_at, event.id))
    assert world.stored(caller, wanted) == slow


def may_see_global(event: Event, caller: str) -> bool:
    return event.kind != 44100 or ("p", caller) in event.tags


def test_1_5_h_finds_an_event_without_one_by_its_channel() -> None:
    world = World()
    channel = world.channel(world.agent)
    message = world.message(world.user, channel)
    reaction = world.accept(world.agent, 7, [["e", message.id]], "+")
    deletion = world.accept(world.agent, 5, [["e", reaction.id]])
    assert world.stored(world.user, {"kinds": [5, 7], "#h": [channel]}) == [deletion]


def test_1_5_p_is_compared_in_lower_case_and_only_as_a_key() -> None:
    world = World()
    channel = world.channel()
    upper = world.message(world.user, channel, "x", ["p", world.agent.pubkey.upper()])
    world.message(world.user, channel, "y", ["p", "no key"])
    wanted = {"kinds": [9], "#h": [channel]}
    assert world.stored(world.user, {**wanted, "#p": [world.agent.pubkey]}) == [upper]
    assert world.stored(world.user, {**wanted, "#p": ["no key"]}) == []


def test_1_5_e_and_d_are_compared_as_they_are() -> None:
    world = World()
    channel = world.channel()
    root = world.message(world.user, channel, "root")
    reply = world.message(world.user, channel, "reply", ["e", root.id, "", "reply"], ["d", "X"])
    assert world.stored(world.user, {"kinds": [9], "#e": [root.id]}) == [reply]
    assert world.stored(world.user, {"kinds": [9], "#d": ["X"]}) == [reply]
    assert world.stored(world.user, {"kinds": [9], "#d": ["x"]}) == []


def test_1_5_every_field_of_a_filter_must_fit() -> None:
    world = World()
    channel = world.channel(world.agent)
    fitting = world.message(world.agent, channel, "x", ["p", world.user.pubkey])
    world.message(world.user, channel, "y", ["p", world.user.pubkey])
    world.message(world.agent, channel, "z")
    wanted = {"kinds": [9], "authors": [world.agent.pubkey], "#p": [world.user.pubkey]}
    assert world.stored(world.user, wanted) == [fitting]


def test_trap_29_membership_is_seen_by_the_next_request() -> None:
    world = World()
    channel = world.channel()
    message = world.message(world.user, channel)
    wanted = {"kinds": [9], "#h": [channel]}
    assert world.query(world.agent, wanted) == []
    world.accept(world.user, 9000, [["h", channel], ["p", world.agent.pubkey]])
    assert world.query(world.agent, wanted) == [message]
    world.accept(world.user, 9001, [["h", channel], ["p", world.agent.pubkey]])
    assert world.query(world.agent, wanted) == []


def test_trap_28_metadata_is_there_before_the_creation_is_answered() -> None:
    world = World()
    channel = world.channel()
    order = [event.kind for event in world.state.store.timeline()]
    assert order == [9007, 40099, 39000, 39001, 39002, 44100]
    assert world.metadata(channel).tags[0] == ("d", channel)


def test_trap_30_members_added_one_after_another_are_all_listed() -> None:
    world = World()
    people = [world.agent, world.other, world.owner]
    channel = world.channel(*people)
    assert list(world.members(channel)) == [pair.pubkey for pair in (world.user, *people)]


def test_2_6_an_archived_channel_stays_readable() -> None:
    world = World()
    channel = world.channel(world.agent)
    message = world.message(world.user, channel)
    world.accept(world.user, 9002, [["h", channel], ["archived", "true"]])
    assert world.query(world.agent, {"kinds": [9], "#h": [channel]}) == [message]


def test_2_9_edits_stand_beside_what_they_edit() -> None:
    world = World()
    channel = world.channel()
    message = world.message(world.user, channel, "old")
    edit = world.accept(world.user, 40003, [["h", channel], ["e", message.id]], "new")
    found = world.stored(world.user, {"kinds": [9, 40003], "#h": [channel]})
    assert sorted(found, key=lambda event: event.kind) == [message, edit]


def test_2_9_a_deletion_of_what_is_gone_already_stays_in_its_channel() -> None:
    world = World()
    channel = world.channel(world.agent)
    message = world.message(world.agent, channel)
    world.accept(world.agent, 5, [["e", message.id]])
    second = world.accept(world.agent, 5, [["e", message.id]], "why it had to go")
    assert world.stored(world.other, {"kinds": [5]}) == []
    assert second in world.stored(world.user, {"kinds": [5], "#h": [channel]})


def test_2_9_a_vote_is_an_event_of_its_channel() -> None:
    world = World()
    channel = world.channel(world.agent)
    post = world.accept(world.user, 45001, [["h", channel]], "post")
    vote = world.accept(world.agent, 45002, [["h", channel], ["e", post.id]], "+")
    assert world.stored(world.user, {"kinds": [45002], "#e": [post.id]}) == [vote]
