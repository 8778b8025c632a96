"""Quotas in fixed windows (§1.7), as a deployment keeps them."""

from __future__ import annotations

from tests.workers.relay.builders import Talker, World
from tests.workers.relay.test_bridge import Caller
from workers.relay.bridge import BridgeReply
from workers.relay.limits import Limits
from workers.relay.rates import Quota, Rates

SPENT = "rate-limited: quota exceeded; retry in {}s"


def world_with(**rates: Quota) -> World:
    world = World(limits=Limits(rates=Rates(**rates)))
    world.clock.now = 1_700_000_040.0  # where a minute begins
    return world


def test_1_7_requests_over_http_are_counted_for_each_key() -> None:
    world = world_with(api=Quota(2, 60))
    caller, wanted = Caller(world), [{"kinds": [0]}]
    assert [caller.post(world.user, "/query", wanted).status for _ in range(2)] == [200, 200]
    limited = caller.post(world.user, "/count", wanted)
    assert limited == BridgeReply(429, {"error": SPENT.format(60)})
    assert caller.post(world.agent, "/query", wanted).status == 200
    world.clock.now += 60
    assert caller.post(world.user, "/query", wanted).status == 200


def test_1_7_a_request_that_is_one_too_many_may_be_sent_again() -> None:
    world = world_with(api=Quota(1, 60))
    caller = Caller(world)
    caller.post(world.user, "/query", [{"kinds": [0]}])
    body = b'[{"kinds":[0]}]'
    request = caller.request(world.user, "/query", body)
    assert caller.bridge.handle(request).status == 429
    world.clock.now += 60
    # Admission comes before the replay guard, which has not seen it.
    assert caller.bridge.handle(request).status == 200


def test_1_7_frames_are_counted_together_and_told_by_closed_or_notice() -> None:
    world = world_with(frames=Quota(2, 5))
    talker = Talker(world)
    event = talker.auth_event(world.agent)
    talker.say("AUTH", event.to_dict())
    profile = world.sign(world.agent, 0, (), "{}")
    assert talker.say("EVENT", profile.to_dict()) == [["OK", profile.id, True, ""]]
    assert talker.say("REQ", "s", {"kinds": [0], "ids": [profile.id]})[-1] == ["EOSE", "s"]
    words = SPENT.format(5)
    assert talker.say("REQ", "t", {"kinds": [0]}) == [["CLOSED", "t", words]]
    assert talker.say("EVENT", profile.to_dict()) == [["NOTICE", words]]
    assert talker.say("COUNT", "u", {"kinds": [0]}) == [["NOTICE", words]]


def test_trap_18_a_message_that_is_one_too_many_gets_no_ok() -> None:
    world = world_with(messages=Quota(1, 60))
    channel = world.channel(world.agent)
    world.message(world.agent, channel)
    talker, caller = Talker(world), Caller(world)
    talker.say("AUTH", talker.auth_event(world.agent).to_dict())
    second = world.sign(world.agent, 9, [["h", channel]], "second")
    words = SPENT.format(60)
    assert talker.say("EVENT", second.to_dict()) == [["NOTICE", words]]
    assert caller.post(world.agent, "/events", second.to_dict()) == BridgeReply(
        429, {"error": words}
    )
    world.accept(world.agent, 0, (), "{}")
    world.message(world.user, channel)
