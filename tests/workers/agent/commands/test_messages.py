from __future__ import annotations

import json

import pytest

from tests.workers.agent.worlds import World, buzz
from workers.nostr.keys import npub


def sent(world: World, event_id: str) -> list[list[str]]:
    event = next(e for e in world.relay.timeline() if e.id == event_id)
    return [list(tag) for tag in event.tags if tag[0] != "auth"]


def content(world: World, event_id: str) -> str:
    return next(e.content for e in world.relay.timeline() if e.id == event_id)


def test_a_reply_with_a_mention(world: World) -> None:
    task = world.run(world.user.client.send_message(world.channel, "do it"))
    told = world.buzz(
        "messages", "send", "--channel", world.channel, "--reply-to", task.id,
        "--mention", world.user.pubkey, "--content", "done",
    )  # fmt: skip
    assert told.code == 0
    assert told.data == {
        "event_id": told.data["event_id"],
        "accepted": True,
        "message": "",
        "mention_pubkeys": [world.user.pubkey],
    }
    assert sent(world, told.data["event_id"]) == [
        ["h", world.channel],
        ["e", task.id, "", "reply"],
        ["p", world.user.pubkey],
    ]
    event = next(e for e in world.relay.timeline() if e.id == told.data["event_id"])
    assert event.tags[-1] == world.agent.attestation.to_tag()


def test_a_reply_inside_a_thread_names_root_and_parent(world: World) -> None:
    root = world.run(world.user.client.send_message(world.channel, "root"))
    inner = world.run(world.user.client.send_message(world.channel, "in", reply_to=root))
    told = world.buzz(
        "messages", "send", "--channel", world.channel, "--reply-to", inner.id,
        "--content", "deep", "--broadcast",
    )  # fmt: skip
    assert sent(world, told.data["event_id"]) == [
        ["h", world.channel],
        ["e", root.id, "", "root"],
        ["e", inner.id, "", "reply"],
        ["broadcast", "1"],
    ]


def test_standard_input_is_sent_verbatim(world: World) -> None:
    text = "Release\n\n- API: ready\n  @ later\n\n"
    told = world.buzz(
        "messages", "send", "--channel", world.channel, "--content", "-", stdin=text.encode()
    )
    assert content(world, told.data["event_id"]) == text


def test_a_backslash_n_stays_one(world: World) -> None:
    told = world.buzz("messages", "send", "--channel", world.channel, "--content", "a\\nb")
    assert content(world, told.data["event_id"]) == "a\\nb"


def test_names_are_resolved_among_members(world: World) -> None:
    told = world.buzz(
        "messages", "send", "--channel", world.channel, "--content", "@jane q. doe, done"
    )
    assert told.data["mention_pubkeys"] == [world.user.pubkey]


def test_an_own_mention_is_kept(world: World) -> None:
    told = world.buzz("messages", "send", "--channel", world.channel, "--content", "I am @solo-1")
    assert told.data["mention_pubkeys"] == [world.agent.pubkey]


def test_explicit_uri_and_name_in_this_order_without_doubles(world: World) -> None:
    third = world.party("Third")
    world.join(third)
    told = world.buzz(
        "messages", "send", "--channel", world.channel, "--mention", npub(third.pubkey),
        "--content", f"@solo-1 nostr:{npub(world.user.pubkey)} @Third",
    )  # fmt: skip
    assert told.data["mention_pubkeys"] == [
        third.pubkey,
        world.user.pubkey,
        world.agent.pubkey,
    ]


def test_one_unresolved_name_stops_a_send_unless_a_key_is_given(world: World) -> None:
    words = ("messages", "send", "--channel", world.channel, "--content", "ask @nobody")
    told = world.buzz(*words)
    assert (told.code, told.fault["error"]) == (1, "user_error")
    assert "@nobody" in told.fault["message"]
    assert world.buzz(*words, "--mention", world.user.pubkey).data["mention_pubkeys"] == [
        world.user.pubkey
    ]


def test_a_name_of_two_members_lists_both_keys(world: World) -> None:
    first, second = world.party("Taylor Lee"), world.party("taylor lee")
    world.join(first)
    world.join(second)
    words = ("messages", "send", "--channel", world.channel, "--content", "@Taylor Lee approved")
    told = world.buzz(*words)
    assert told.code == 1
    assert first.pubkey in told.fault["message"]
    assert second.pubkey in told.fault["message"]
    chosen = world.buzz(*words, "--mention", second.pubkey)
    assert chosen.data["mention_pubkeys"] == [second.pubkey]


@pytest.mark.parametrize("as_uri", [True, False])
def test_who_is_no_member_stops_a_send_with_a_way_out(world: World, as_uri: bool) -> None:
    stranger = world.party("Stranger")
    words = ["messages", "send", "--channel", world.channel, "--content"]
    if as_uri:
        words += [f"see nostr:{npub(stranger.pubkey)}"]
    else:
        words += ["hi", "--mention", stranger.pubkey]
    told = world.buzz(*words)
    assert told.code == 1
    inner = json.loads(told.fault["message"])
    assert inner["missing_member_pubkeys"] == [stranger.pubkey]
    assert stranger.pubkey in inner["add_member_command"]
    assert world.channel in inner["add_member_command"]
    before = len(world.relay.timeline())
    assert not any(e.content == "hi" for e in world.relay.timeline())
    assert len(world.relay.timeline()) == before


def test_code_does_not_notify(world: World) -> None:
    told = world.buzz(
        "messages", "send", "--channel", world.channel, "--content", "run `@solo-1` @Jane Q. Doe"
    )
    assert told.data["mention_pubkeys"] == [world.user.pubkey]


def test_members_that_cannot_be_read_are_error_4(world: World) -> None:
    outsider = world.party("Outsider")
    told = world.buzz(
        "messages", "send", "--channel", world.channel, "--content", "@x", as_=outsider
    )
    assert (told.code, told.fault["error"]) == (4, "error")
    assert "could not load channel membership for mention preflight" in told.fault["message"]


def test_a_refusal_of_the_relay_is_error_2(world: World) -> None:
    outsider = world.party("Outsider")
    told = world.buzz(
        "messages", "send", "--channel", world.channel, "--content", "x", as_=outsider
    )
    assert (told.code, told.fault["error"], told.fault["retryable"]) == (2, "relay_error", False)
    assert told.fault["message"].startswith("relay error 400: ")


def test_an_unknown_parent_is_not_found(world: World) -> None:
    told = world.buzz(
        "messages", "send", "--channel", world.channel, "--content", "x", "--reply-to", "0" * 64
    )
    assert (told.code, told.fault["error"]) == (1, "not_found")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (["--channel", "nonsense"], "UUID"),
        (["--reply-to", "abc"], "event id"),
        (["--mention", "npub1x"], "public key"),
        (["--file", "/etc/hosts"], "--file"),
        (["--content", "x" * 65537], "65536 bytes"),
    ],
)
def test_what_is_malformed_never_reaches_the_relay(change: list[str], reason: str) -> None:
    given = {"--channel": "45efb0ba-a515-450f-b753-7411dfd6b163", "--content": "x"}
    given[change[0]] = change[1]
    words = [word for pair in given.items() for word in pair]
    told = buzz("messages", "send", *words, variables={"BUZZ_PRIVATE_KEY": "1" * 64})
    assert told.code == 1
    assert reason in told.fault["message"]


def test_more_than_fifty_mentions_are_refused() -> None:
    words = [word for n in range(51) for word in ("--mention", f"{n:064x}")]
    told = buzz(
        "messages", "send", "--channel", "45efb0ba-a515-450f-b753-7411dfd6b163", *words,
        "--content", "x", variables={"BUZZ_PRIVATE_KEY": "1" * 64},
    )  # fmt: skip
    assert (told.code, "at most 50" in told.errors) == (1, True)


def test_get_is_oldest_first_and_within_a_second_by_id(world: World) -> None:
    for number in range(4):
        world.run(world.user.client.send_message(world.channel, f"m{number}"))
    rows = world.buzz("messages", "get", "--channel", world.channel).data
    assert [set(row) for row in rows] == [
        {"id", "pubkey", "kind", "content", "created_at", "tags"}
    ] * 4
    assert rows == sorted(rows, key=lambda row: (row["created_at"], row["id"]))
    compact = world.buzz("messages", "get", "--channel", world.channel, "--format", "compact")
    assert [set(row) for row in compact.data] == [{"id", "content", "created_at"}] * 4
    few = world.buzz("messages", "get", "--channel", world.channel, "--limit", "2").data
    assert len(few) == 2
    none = world.buzz("messages", "get", "--channel", world.channel, "--kinds", "45001,45003")
    assert none.data == []


def test_thread_and_search(world: World) -> None:
    root = world.run(world.user.client.send_message(world.channel, "the root"))
    reply = world.run(world.user.client.send_message(world.channel, "a leaf", reply_to=root))
    world.run(world.user.client.send_message(world.channel, "elsewhere"))
    words = ("messages", "thread", "--channel", world.channel, "--event", reply.id)
    assert {row["id"] for row in world.buzz(*words).data} == {root.id, reply.id}
    found = world.buzz("messages", "search", "--query", "leaf").data
    assert [row["id"] for row in found] == [reply.id]
    mine = world.buzz("messages", "search", "--author", "jane q. doe").data
    assert len(mine) == 3
    assert world.buzz("messages", "search").code == 1
    assert world.buzz("messages", "search", "--author", "No One").code == 1


def test_edit_and_delete(world: World) -> None:
    told = world.buzz("messages", "send", "--channel", world.channel, "--content", "old")
    event = told.data["event_id"]
    assert world.buzz("messages", "edit", "--event", event, "--content", "-").data["accepted"]
    assert world.relay.timeline()[-1].content == "-"
    assert world.buzz("messages", "delete", "--event", event).data["accepted"]
    assert world.buzz("messages", "delete", "--event", "1" * 64).code == 1
