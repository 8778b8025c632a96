"""The HTTP bridge without a socket (§1.8–§1.10): statuses, bodies, order of checks."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.workers.relay.builders import HOST, World
from workers.nostr.attestation import attest
from workers.nostr.http_auth import authorize
from workers.nostr.keys import Keypair
from workers.relay.bridge import NOT_A_RELAY_MEMBER, Bridge, BridgeReply, BridgeRequest


class Caller:
    """Posts to a bridge."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.bridge = Bridge(world.core)

    def request(
        self, pair: Keypair, path: str, body: bytes, *, is_attested: bool = True
    ) -> BridgeRequest:
        tag = attest(self.world.owner, pair.pubkey).to_text() if is_attested else None
        header = authorize(pair, f"http://{HOST}{path}", "POST", body, self.world.clock())
        return BridgeRequest(path, HOST, header, tag, body)

    def post(self, pair: Keypair, path: str, data: Any) -> BridgeReply:
        body = data if isinstance(data, bytes) else json.dumps(data).encode()
        is_attested = pair != self.world.owner
        return self.bridge.handle(self.request(pair, path, body, is_attested=is_attested))


def test_1_9_events() -> None:
    world = World()
    caller = Caller(world)
    event = world.sign(world.user, 0, (), "{}")
    assert caller.post(world.user, "/events", event.to_dict()) == BridgeReply(
        200, {"event_id": event.id, "accepted": True, "message": ""}
    )
    again = caller.post(world.user, "/events", event.to_dict())
    assert again.status == 200
    assert again.body["accepted"] is True
    assert again.body["message"].startswith("duplicate:")


def test_1_9_query_and_count() -> None:
    world = World()
    channel = world.channel()
    message = world.message(world.user, channel)
    caller = Caller(world)
    wanted = [{"kinds": [9], "#h": [channel]}]
    assert caller.post(world.user, "/query", wanted) == BridgeReply(200, [message.to_dict()])
    assert caller.post(world.user, "/count", wanted) == BridgeReply(200, {"count": 1})
    assert caller.post(world.user, "/query", []) == BridgeReply(200, [])


def test_trap_20_an_authorisation_works_once() -> None:
    world = World()
    caller = Caller(world)
    request = caller.request(world.user, "/query", b"[]")
    assert caller.bridge.handle(request).status == 200
    assert caller.bridge.handle(request) == BridgeReply(401, {"error": "NIP-98: replay detected"})
    world.clock.now += 121
    assert caller.bridge.handle(request).status == 401  # too old by now


def test_1_8_without_authorisation_nothing_is_told() -> None:
    world = World()
    caller = Caller(world)
    for path in ("/events", "/query", "/count"):
        request = BridgeRequest(path, HOST, None, None, b"[]")
        assert caller.bridge.handle(request) == BridgeReply(401, {"error": "missing Nostr auth"})


def test_1_8_the_signed_url_names_host_and_path() -> None:
    world = World()
    caller = Caller(world)
    made = caller.request(world.user, "/query", b"[]")
    moved = BridgeRequest("/count", HOST, made.authorization, made.auth_tag, b"[]")
    assert caller.bridge.handle(moved) == BridgeReply(401, {"error": "NIP-98: URL mismatch"})


@pytest.mark.parametrize("tag", [None, "", "junk", "[]"])
@pytest.mark.parametrize("path", ["/events", "/query", "/count"])
def test_2_13_without_a_good_attestation_a_key_is_no_member(path: str, tag: str | None) -> None:
    world = World()
    stranger = Keypair.generate()
    event = world.sign(stranger, 0, (), "{}").to_json().encode()
    caller = Caller(world)
    body = event if path == "/events" else b"[]"
    made = caller.request(stranger, path, body)
    request = BridgeRequest(path, HOST, made.authorization, tag, body)
    assert caller.bridge.handle(request) == BridgeReply(403, NOT_A_RELAY_MEMBER)
    assert len(world.state.store) == 0


def test_2_13_an_attestation_is_good_for_its_own_key() -> None:
    world = World()
    caller = Caller(world)
    stranger = Keypair.generate()
    made = caller.request(stranger, "/query", b"[]")
    tag = attest(world.owner, world.user.pubkey).to_text()
    request = BridgeRequest("/query", HOST, made.authorization, tag, b"[]")
    assert caller.bridge.handle(request).status == 403


def test_2_13_the_owner_needs_none() -> None:
    world = World()
    assert Caller(world).post(world.owner, "/query", []).status == 200


def test_trap_58_an_owner_is_recorded_on_events_and_not_on_queries() -> None:
    world = World()
    fresh = Keypair.generate()
    caller = Caller(world)
    assert caller.post(fresh, "/query", []).status == 200
    assert fresh.pubkey not in world.state.owners
    caller.post(fresh, "/events", world.sign(fresh, 0, (), "{}").to_dict())
    assert world.state.owners[fresh.pubkey] == world.owner.pubkey


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"null", b"\xff", b"[" * 100_000, b"{}"])
def test_1_9_what_is_no_event_is_a_400(body: bytes) -> None:
    world = World()
    reply = Caller(world).post(world.user, "/events", body)
    assert reply.status == 400
    assert reply.body["error"].startswith("invalid event JSON: ")


def test_1_8_events_are_parsed_before_membership_and_filters_after() -> None:
    world = World()
    caller, stranger = Caller(world), Keypair.generate()
    for path, status in (("/events", 400), ("/query", 403), ("/count", 403)):
        request = caller.request(stranger, path, b"junk", is_attested=False)
        assert caller.bridge.handle(request).status == status


@pytest.mark.parametrize("body", [b"", b"{}", b"null", b"[null]", b'[{"kinds":1}]', b"[" * 100_000])
@pytest.mark.parametrize("path", ["/query", "/count"])
def test_1_9_what_are_no_filters_is_a_400(path: str, body: bytes) -> None:
    world = World()
    reply = Caller(world).post(world.user, path, body)
    assert reply.status == 400
    assert reply.body["error"].startswith("invalid filters: ")


def test_1_3_too_many_channels_are_a_400() -> None:
    world = World()
    wanted = [{"kinds": [9], "#h": [str(number) for number in range(129)]}]
    reply = Caller(world).post(world.user, "/query", wanted)
    assert reply == BridgeReply(400, {"error": "too many explicit channels"})
    assert Caller(world).post(world.user, "/query", [{"kinds": [9]}] * 11).status == 400


@pytest.mark.parametrize("path", ["/query", "/count"])
@pytest.mark.parametrize(
    ("wanted", "reason"),
    [
        ({}, "restricted: p-gated kinds require #p tag matching your pubkey"),
        (
            {"kinds": [30174]},
            "restricted: agent-engram reads require authors=[self] or #p=[self]",
        ),
        ({"kinds": [30350]}, "restricted: author-only kinds require authors=[self]"),
    ],
)
def test_1_5_gates_are_a_403(path: str, wanted: dict[str, Any], reason: str) -> None:
    world = World()
    reply = Caller(world).post(world.user, path, [wanted])
    assert reply == BridgeReply(403, {"error": reason})


def test_1_10_mixed_searches_are_a_400() -> None:
    world = World()
    wanted = [{"search": "x", "kinds": [9]}, {"kinds": [9]}]
    assert Caller(world).post(world.user, "/query", wanted).status == 400


def test_trap_19_a_missing_right_in_a_channel_is_a_400_and_a_wrong_identity_a_403() -> None:
    world = World()
    channel = world.channel()
    caller = Caller(world)
    event = world.sign(world.other, 9, [["h", channel]])
    assert caller.post(world.other, "/events", event.to_dict()) == BridgeReply(
        400, {"error": "restricted: not a channel member"}
    )
    assert caller.post(world.user, "/events", event.to_dict()).status == 403


def test_1_9_accepted_false_is_a_200_for_two_duplicates() -> None:
    world = World()
    caller = Caller(world)
    channel = world.channel()
    event = world.sign(world.other, 9007, [["h", channel], ["name", "x"]])
    assert caller.post(world.other, "/events", event.to_dict()) == BridgeReply(
        200,
        {
            "event_id": event.id,
            "accepted": False,
            "message": "duplicate: channel already exists",
        },
    )


def test_trap_14_presence_is_answered_from_who_is_present() -> None:
    world = World()
    world.accept(world.agent, 20001, (), "online", over_http=False)
    caller = Caller(world)
    for kind in (20001, 40902):
        asked = [world.agent.pubkey, world.other.pubkey]
        wanted = [{"kinds": [kind], "authors": asked}, {"kinds": [kind], "authors": asked}]
        (event,) = caller.post(world.user, "/query", wanted).body
        assert (event["kind"], event["content"]) == (20001, "online")
        assert event["tags"] == [["p", world.agent.pubkey]]
        assert event["pubkey"] == world.state.keypair.pubkey


def test_1_8_a_used_proof_is_refused_before_membership_is_looked_at() -> None:
    world = World()
    caller, stranger = Caller(world), Keypair.generate()
    request = caller.request(stranger, "/query", b"[]", is_attested=False)
    assert [caller.bridge.handle(request).status for _ in range(2)] == [403, 401]


def test_1_8_a_proof_is_used_up_by_a_request_that_fails() -> None:
    world = World()
    caller = Caller(world)
    request = caller.request(world.user, "/query", b"junk")
    assert [caller.bridge.handle(request).status for _ in range(2)] == [400, 401]


def test_1_8_a_wrong_proof_is_refused_before_the_body_is_read() -> None:
    world = World()
    caller = Caller(world)
    made = caller.request(world.user, "/events", b"{}")
    request = BridgeRequest("/events", HOST, made.authorization, made.auth_tag, b"junk")
    assert caller.bridge.handle(request) == BridgeReply(
        401, {"error": "NIP-98: payload hash mismatch"}
    )


def test_1_10_gates_come_after_the_filters_are_understood() -> None:
    world = World()
    reply = Caller(world).post(world.user, "/query", [{}, {"kinds": "x"}])
    assert reply.status == 400


@pytest.mark.parametrize("kind", [20001, 20002, 24200, 1059])
def test_trap_26_what_passes_is_refused_over_http(kind: int) -> None:
    world = World()
    event = world.sign(world.agent, kind)
    reply = Caller(world).post(world.agent, "/events", event.to_dict())
    assert reply == BridgeReply(
        400, {"error": f"invalid: kind {kind} is only accepted via WebSocket"}
    )


def test_1_9_a_lost_race_is_accepted_as_a_duplicate() -> None:
    world = World()
    world.accept(world.user, 0, (), "{}")
    older = world.sign(world.user, 0, (), "{}", int(world.clock()) - 5)
    reply = Caller(world).post(world.user, "/events", older.to_dict())
    assert (reply.status, reply.body["accepted"]) == (200, True)
    assert reply.body["message"].startswith("duplicate:")


def test_1_9_a_second_reaction_is_a_200_that_is_not_accepted() -> None:
    world = World()
    caller = Caller(world)
    message = world.message(world.user, world.channel())
    world.accept(world.user, 7, [["e", message.id]], "+")
    world.clock.now += 1
    again = world.sign(world.user, 7, [["e", message.id]], "+")
    assert caller.post(world.user, "/events", again.to_dict()) == BridgeReply(
        200,
        {
            "event_id": again.id,
            "accepted": False,
            "message": "duplicate: reaction already exists",
        },
    )


def test_1_10_a_cursor_without_its_time_is_a_400() -> None:
    world = World()
    reply = Caller(world).post(world.user, "/query", [{"kinds": [9], "before_id": "a" * 64}])
    assert reply.status == 400


def test_1_10_presence_leaves_out_who_is_absent() -> None:
    world = World()
    wanted = [{"kinds": [40902], "authors": [world.agent.pubkey]}]
    assert Caller(world).post(world.user, "/query", wanted) == BridgeReply(200, [])


def test_trap_5_tolerances_differ_by_layer() -> None:
    world = World()
    caller = Caller(world)
    early = world.sign(world.user, 0, (), "{}", int(world.clock()) - 900)
    assert caller.post(world.user, "/events", early.to_dict()).status == 200
    body = b"[]"
    header = authorize(world.user, f"http://{HOST}/query", "POST", body, world.clock() - 61)
    tag = attest(world.owner, world.user.pubkey).to_text()
    late = caller.bridge.handle(BridgeRequest("/query", HOST, header, tag, body))
    assert late == BridgeReply(401, {"error": "NIP-98: timestamp too far from server time"})
