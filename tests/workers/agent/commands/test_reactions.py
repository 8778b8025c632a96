from __future__ import annotations

from tests.workers.agent.worlds import World


def test_a_reaction_is_added_counted_and_removed(world: World) -> None:
    task = world.run(world.user.client.send_message(world.channel, "do it"))
    words = ("--event", task.id, "--emoji", "\U0001f440")
    assert world.buzz("reactions", "add", *words).data["accepted"] is True
    again = world.buzz("reactions", "add", *words)
    assert again.code == 0
    assert again.data["message"].startswith("duplicate:")
    assert world.buzz("reactions", "get", "--event", task.id).data == {
        "reactions": [{"emoji": "\U0001f440", "count": 1, "pubkeys": [world.agent.pubkey]}]
    }
    assert world.buzz("reactions", "remove", *words).data["accepted"] is True
    assert world.buzz("reactions", "get", "--event", task.id).data == {"reactions": []}
    assert world.buzz("reactions", "remove", *words).fault["error"] == "not_found"


def test_a_custom_emoji_carries_its_picture(world: World) -> None:
    task = world.run(world.user.client.send_message(world.channel, "do it"))
    world.buzz(
        "reactions", "add", "--event", task.id, "--emoji", "bee", "--emoji-url", "https://x/y.png"
    )
    event = world.relay.timeline()[-1]
    assert event.content == ":bee:"
    assert ("emoji", "bee", "https://x/y.png") in event.tags


def test_an_emoji_has_a_size(world: World) -> None:
    words = ("reactions", "add", "--event", "0" * 64, "--emoji")
    assert world.buzz(*words, "").code == 1
    assert world.buzz(*words, "x" * 65).code == 1
