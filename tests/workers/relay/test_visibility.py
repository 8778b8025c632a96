"""Read gates and the rule for each event (§1.5)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.workers.relay.builders import World
from workers.nostr.filters import Filter
from workers.relay.visibility import AUTHOR_ONLY, ENGRAM, gate_fault, scope_of

ME, YOU = "a" * 64, "b" * 64
P = "p-gated"


def fault(*filters: dict[str, Any]) -> str | None:
    return gate_fault([Filter.from_dict(data) for data in filters], ME, P)


@pytest.mark.parametrize(
    ("wanted", "reason"),
    [
        ({"kinds": [9]}, None),
        ({"kinds": [0], "authors": [YOU]}, None),
        ({}, P),
        ({"#h": ["x", "y"]}, P),
        ({"#h": ["x"]}, None),
        ({"#p": [ME]}, None),
        ({"#p": [YOU]}, P),
        ({"#p": [ME, YOU]}, P),
        ({"#p": []}, P),
        ({"ids": [YOU]}, None),
        ({"ids": []}, P),
        ({"kinds": [44100]}, P),
        ({"kinds": [44100, 9]}, P),
        ({"kinds": [44100, 44101], "#p": [ME]}, None),
        ({"kinds": [44100], "ids": [YOU]}, None),
        ({"kinds": [44200], "ids": [YOU]}, P),
        ({"kinds": [44200], "#p": [ME]}, None),
        ({"kinds": [30622, 9], "ids": [YOU]}, P),
        ({"kinds": [1059]}, P),
        ({"kinds": [24200]}, P),
        ({"kinds": [30174]}, ENGRAM),
        ({"kinds": [30174], "authors": [ME]}, None),
        ({"kinds": [30174], "authors": [YOU]}, ENGRAM),
        ({"kinds": [30174], "authors": [ME, YOU]}, ENGRAM),
        ({"kinds": [30174], "authors": [YOU], "#p": [ME]}, None),
        ({"kinds": [30174], "ids": [YOU]}, None),
        ({"kinds": [30350]}, AUTHOR_ONLY),
        ({"kinds": [30350, 30300]}, AUTHOR_ONLY),
        ({"kinds": [30350], "authors": [ME]}, None),
        ({"kinds": [30350, 9]}, None),
        ({"kinds": []}, None),
    ],
)
def test_1_5_gates(wanted: dict[str, Any], reason: str | None) -> None:
    assert fault(wanted) == reason


def test_1_5_every_filter_passes_the_gates() -> None:
    assert fault({"kinds": [9]}, {"kinds": [44100]}) == P


def test_1_5_a_request_scoped_to_one_channel_passes_without_gates() -> None:
    assert fault({"#h": ["x"], "kinds": [9]}, {"#h": ["x"]}) is None
    assert fault({"#h": ["x"]}, {"#h": ["y"]}) == P
    assert fault({"#h": ["x"]}, {"kinds": [9]}) == P


def test_1_5_scope() -> None:
    def scope(*filters: dict[str, Any]) -> frozenset[str] | None:
        return scope_of([Filter.from_dict(data) for data in filters])

    assert scope({"#h": ["x"]}, {"#h": ["y", "x"]}) == frozenset("xy")
    assert scope({"#h": ["x"]}, {"kinds": [9]}) is None
    assert scope({"#h": []}) == frozenset()


def test_1_5_what_names_somebody_else_is_not_shown_whatever_was_asked() -> None:
    world = World()
    world.channel(world.agent)
    timeline = world.state.store.timeline()
    notice = next(e for e in timeline if e.kind == 44100 and e.tags[0][1] == world.agent.pubkey)
    assert world.stored(world.other, {"ids": [notice.id]}) == []
    assert world.stored(world.agent, {"ids": [notice.id]}) == [notice]


def test_1_5_engrams_are_their_authors_and_owners() -> None:
    world = World()
    event = world.accept(
        world.agent,
        30174,
        [["d", "a" * 64], ["p", world.owner.pubkey]],
        world.agent.encrypt(world.owner.pubkey, "x"),
    )
    assert world.stored(world.agent, {"kinds": [30174]}) == [event]
    assert world.stored(world.owner, {"kinds": [30174]}) == [event]
    assert world.stored(world.other, {"ids": [event.id]}) == []


@pytest.mark.parametrize("kind", [30175, 30178])
def test_1_5_unshared_personas_are_their_authors(kind: int) -> None:
    world = World()
    hidden = world.accept(world.user, kind, [["d", "x"]])
    shared = world.accept(world.user, kind, [["d", "y"], ["shared", "true"]])
    assert world.stored(world.other, {"kinds": [kind]}) == [shared]
    assert len(world.stored(world.user, {"kinds": [kind]})) == 2
    assert hidden.id != shared.id


def test_1_5_author_only_kinds_are_their_authors() -> None:
    world = World()
    event = world.accept(world.user, 30300, [["d", "x"]])
    assert world.stored(world.other, {"ids": [event.id]}) == []
    assert world.stored(world.user, {"ids": [event.id]}) == [event]
