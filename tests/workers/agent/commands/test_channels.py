from __future__ import annotations

import pytest

from tests.workers.agent.worlds import World


def create(world: World, name: str, *more: str) -> str:
    told = world.buzz(
        "channels", "create", "--name", name, "--type", "stream", "--visibility", "private", *more
    )
    assert told.code == 0, told.errors
    return str(told.data["channel_id"])


def test_a_channel_with_an_end_and_members(world: World) -> None:
    channel = create(world, "fix-pr-1234", "--ttl", "3600", "--description", "one hour")
    bot = world.party("bot")
    for key, role in ((world.user.pubkey, "member"), (bot.pubkey, "bot")):
        told = world.buzz(
            "channels", "add-member", "--channel", channel, "--pubkey", key, "--role", role
        )
        assert told.data["accepted"]
    rows = world.buzz("channels", "search", "--query", "FIX-PR-1234", "--exact").data
    assert rows == [
        {
            "channel_id": channel,
            "name": "fix-pr-1234",
            "channel_type": "stream",
            "visibility": "private",
            "archived": False,
            "about": "one hour",
            "topic": None,
            "purpose": None,
            "ttl_seconds": 3600,
        }
    ]
    members = world.buzz("channels", "members", "--channel", channel).data
    assert {row["pubkey"]: row["role"] for row in members} == {
        world.agent.pubkey: "owner",
        world.user.pubkey: "member",
        bot.pubkey: "bot",
    }
    world.buzz("channels", "remove-member", "--channel", channel, "--pubkey", bot.pubkey)
    assert len(world.buzz("channels", "members", "--channel", channel).data) == 2


def test_search_is_by_part_sorted_and_hides_archived_ones(world: World) -> None:
    second, first = create(world, "plan b"), create(world, "Plan a")
    rows = world.buzz("channels", "search", "--query", "plan").data
    assert [row["channel_id"] for row in rows] == [first, second]
    assert world.buzz("channels", "archive", "--channel", first).data["accepted"]
    rows = world.buzz("channels", "search", "--query", "plan").data
    assert [row["channel_id"] for row in rows] == [second]
    rows = world.buzz("channels", "search", "--query", "plan", "--include-archived").data
    assert [row["archived"] for row in rows] == [True, False]
    assert world.buzz("channels", "unarchive", "--channel", first).data["accepted"]
    assert len(world.buzz("channels", "search", "--query", "plan", "--limit", "1").data) == 1


def test_get_list_and_update(world: World) -> None:
    channel = create(world, "old", "--description", "d")
    row = world.buzz("channels", "get", "--channel", channel).data
    assert set(row) == {"channel_id", "name", "description", "created_at", "pubkey"}
    assert row["pubkey"] == world.relay.pubkey
    update = ("channels", "update", "--channel", channel)
    assert world.buzz(*update, "--name", "new", "--no-ttl").data["accepted"]
    assert world.buzz("channels", "get", "--channel", channel).data["name"] == "new"
    assert world.buzz(*update).code == 1
    assert world.buzz(*update, "--ttl", "5", "--no-ttl").code == 1
    listed = world.buzz("channels", "list", "--member").data
    assert {row["name"] for row in listed} == {"new", "trial"}
    assert world.buzz("channels", "list", "--visibility", "open").data == []
    nowhere = "45efb0ba-a515-450f-b753-7411dfd6b163"
    assert world.buzz("channels", "get", "--channel", nowhere).output == "null\n"
    assert world.buzz("channels", "members", "--channel", nowhere).data == []


def test_topic_purpose_join_and_leave(world: World) -> None:
    channel = create(world, "talk")
    for field in ("topic", "purpose"):
        told = world.buzz("channels", field, "--channel", channel, f"--{field}", "words")
        assert told.data["accepted"]
    row = world.buzz("channels", "search", "--query", "talk").data[0]
    assert (row["topic"], row["purpose"]) == ("words", "words")
    told = world.buzz("channels", "join", "--channel", channel, as_=world.user)
    assert (told.code, "private" in told.errors) == (2, True)
    world.buzz("channels", "add-member", "--channel", channel, "--pubkey", world.user.pubkey)
    assert world.buzz("channels", "leave", "--channel", channel, as_=world.user).code == 0


@pytest.mark.parametrize(
    "words",
    [
        ("create", "--name", "x", "--type", "dm", "--visibility", "private"),
        ("create", "--name", "x", "--type", "stream", "--visibility", "public"),
        ("create", "--name", "x", "--type", "stream", "--visibility", "open", "--ttl", "0"),
        ("create", "--name", "x", "--type", "stream", "--visibility", "open", "--ttl", "1h"),
        ("add-member", "--channel", "x", "--pubkey", "0" * 64),
        ("add-member", "--channel", "45efb0ba-a515-450f-b753-7411dfd6b163", "--pubkey", "npub1x"),
    ],
)
def test_what_is_malformed_is_a_user_error(world: World, words: tuple[str, ...]) -> None:
    told = world.buzz("channels", *words)
    assert (told.code, told.fault["error"]) == (1, "user_error")
