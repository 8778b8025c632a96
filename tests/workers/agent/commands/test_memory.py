from __future__ import annotations

import hashlib

import pytest

from tests.workers.agent.worlds import World
from workers.agent.bridge import Bridge
from workers.agent.commands.memory import read_core


def test_what_the_harness_seeds_is_found(world: World) -> None:
    world.run(world.agent.client.write_memory("total-metric", "352,345 customers"))
    world.run(world.agent.client.write_memory("core", "I am solo-1."))
    told = world.buzz("mem", "ls")
    slug, created_at, event_id = told.output.rstrip("\n").split("\t")
    assert slug == "mem/total-metric"
    assert created_at.isdigit()
    assert len(event_id) == 64
    assert world.buzz("mem", "get", "total-metric").output == "352,345 customers"
    assert world.buzz("mem", "get", "core").output == "I am solo-1."
    bridge = Bridge(f"http://{world.host}", world.agent.identity())
    assert read_core(bridge, world.owner.pubkey) == "I am solo-1."


def test_set_get_hash_remove(world: World) -> None:
    assert world.buzz("mem", "ls").errors == "no memories\n"
    assert world.buzz("mem", "set", "a/b", "-", stdin=b"one\ntwo\n").output == ""
    assert world.buzz("mem", "get", "mem/a/b").output == "one\ntwo\n"
    digest = hashlib.sha256(b"one\ntwo\n").hexdigest()
    assert world.buzz("mem", "hash", "a/b").output == digest + "\n"
    assert world.buzz("mem", "set", "z", "").code == 0
    assert world.buzz("mem", "get", "z").output == ""
    assert [row["slug"] for row in world.buzz("mem", "ls", "--json").data] == ["mem/a/b", "mem/z"]
    assert world.buzz("mem", "rm", "a/b").code == 0
    for command in ("get", "hash"):
        told = world.buzz("mem", command, "a/b")
        assert (told.code, told.fault["error"]) == (1, "not_found")
    assert [row["slug"] for row in world.buzz("mem", "ls", "--json").data] == ["mem/z"]
    assert world.buzz("mem", "set", "a/b", "again").code == 0
    assert world.buzz("mem", "get", "a/b").output == "again"


def test_a_patch_is_checked_against_what_it_was_made_for(world: World) -> None:
    world.buzz("mem", "set", "n", "one\ntwo\n")
    patch = b"@@ -1,2 +1,2 @@\n one\n-two\n+2\n"
    base = hashlib.sha256(b"one\ntwo\n").hexdigest()
    assert world.buzz("mem", "patch", "n", "--base-hash", "0" * 64, stdin=patch).code == 5
    dry = world.buzz("mem", "patch", "n", "--base-hash", base, "--dry-run", stdin=patch)
    assert dry.output == "one\n2\n"
    assert world.buzz("mem", "patch", "n", "--base-hash", base, stdin=patch).code == 0
    assert world.buzz("mem", "get", "n").output == "one\n2\n"
    told = world.buzz("mem", "patch", "n", "--no-base-hash", stdin=patch)
    assert (told.code, told.fault["error"]) == (5, "conflict")
    assert world.buzz("mem", "patch", "n", stdin=patch).code == 1
    assert world.buzz("mem", "patch", "n", "--no-base-hash", stdin=b"x").code == 1
    empty = b"@@ -1,2 +0,0 @@\n-one\n-2\n"
    assert world.buzz("mem", "patch", "n", "--no-base-hash", stdin=empty).code == 1
    words = ("mem", "patch", "n", "--no-base-hash", "--allow-empty")
    assert world.buzz(*words, stdin=empty).code == 0
    assert world.buzz("mem", "patch", "nothing", "--no-base-hash", stdin=empty).code == 1


def test_the_owner_reads_its_agents_memories(world: World) -> None:
    world.buzz("mem", "set", "n", "v")
    told = world.buzz("mem", "get", "n", "--agent", world.agent.pubkey, as_=world.user)
    assert told.code == 1
    assert world.buzz("mem", "ls", "--agent", "x", "--owner", "y").code == 1


@pytest.mark.parametrize(
    "words",
    [
        ("get", "UPPER"),
        ("get", "a//b"),
        ("get", "../x"),
        ("rm", "core"),
        ("set", "n"),
    ],
)
def test_what_is_no_memory_is_a_user_error(world: World, words: tuple[str, ...]) -> None:
    told = world.buzz("mem", *words)
    assert (told.code, told.fault["error"]) == (1, "user_error")


def test_an_empty_standard_input_needs_a_word_for_it(world: World) -> None:
    assert world.buzz("mem", "set", "n", "-", stdin=b"").code == 1
    assert world.buzz("mem", "set", "n", "-", "--allow-empty", stdin=b"").code == 0
