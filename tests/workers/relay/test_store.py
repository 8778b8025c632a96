"""The store: append-only, unique, one current version."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from workers.nostr.event import Event
from workers.nostr.filters import Filter
from workers.relay.store import EventStore


def event(number: int, kind: int = 9, moment: int = 0, *tags: tuple[str, ...]) -> Event:
    return Event(f"{number:064x}", "a" * 64, moment, kind, tags, "", "0" * 128)


def test_2_15_hidden_events_leave_every_answer_and_stay_in_the_timeline() -> None:
    store = EventStore()
    stored = store.append(event(1, 9, 0, ("p", "b" * 64), ("h", "x")), "x")
    store.hide(stored)
    store.hide(stored)
    assert store.get(stored.event.id) is None
    assert store.known(stored.event.id) is stored
    assert store.timeline() == [stored.event]
    for data in ({}, {"kinds": [9]}, {"authors": ["a" * 64]}, {"#p": ["b" * 64]}, {"#h": ["x"]}):
        assert list(store.candidates(Filter.from_dict(data))) == []
    assert store.in_channel("x") == []


def test_2_15_a_hidden_version_gives_its_place_free() -> None:
    store = EventStore()
    stored = store.append(event(1, 0, 5), None)
    store.hide(stored)
    assert not store.loses(event(2, 0, 1), None)


@settings(deadline=None)
@given(st.permutations([(number, moment) for moment in (0, 1) for number in range(3)]))
def test_2_15_whatever_the_order_the_newest_then_lowest_id_is_current(
    order: list[tuple[int, int]],
) -> None:
    store = EventStore()
    for number, moment in order:
        candidate = event(number + 10 * moment, 30174, moment, ("d", "x"))
        if not store.loses(candidate, None):
            store.append(candidate, None)
    current = store.current(30174, "a" * 64, "x")
    assert current is not None
    assert current.event.id == f"{10:064x}"
    assert list(store.candidates(Filter.from_dict({"kinds": [30174]}))) == [current]


def test_2_15_places_of_replaceable_events() -> None:
    store = EventStore()
    store.append(event(1, 0, 5), None)
    assert store.loses(event(2, 0, 5), None)
    assert not store.loses(event(2, 0, 5), "channel")
    assert not store.loses(event(2, 10100, 5), None)
    assert not store.loses(event(2, 9, 5), None)


def test_positions_are_the_order_of_acceptance() -> None:
    store = EventStore()
    found = [store.append(event(number), None).position for number in (5, 3, 4)]
    assert found == [0, 1, 2]
    assert [one.id[-1] for one in store.timeline_from(1)] == ["3", "4"]
