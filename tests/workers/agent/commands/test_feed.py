from __future__ import annotations

from tests.workers.agent.worlds import World


def test_the_feed_shows_mentions(world: World) -> None:
    world.run(world.user.client.send_message(world.channel, "you", mentions=[world.agent.pubkey]))
    world.run(world.user.client.send_message(world.channel, "nobody"))
    rows = world.buzz("feed", "get", "--types", "mentions").data
    assert [row["content"] for row in rows] == ["you"]
    assert world.buzz("feed", "get", "--types", "gossip").code == 1


def test_a_canvas_is_printed_as_it_is(world: World) -> None:
    words = ("canvas", "set", "--channel", world.channel, "--content", "-")
    assert world.buzz("canvas", "get", "--channel", world.channel).code == 1
    assert world.buzz(*words, stdin=b"# Plan\n").data["accepted"]
    assert world.buzz("canvas", "get", "--channel", world.channel).output == "# Plan\n"


def test_direct_conversations_take_one_to_eight_others(world: World) -> None:
    words = [word for n in range(1, 10) for word in ("--pubkey", f"{n:064x}")]
    assert world.buzz("dms", "open").code == 1
    told = world.buzz("dms", "open", *words)
    assert told.code == 1
    assert world.buzz("dms", "list").data == []
