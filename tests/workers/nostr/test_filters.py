"""Filters, against a slow twin that restates NIP-01 and Buzz's additions in plain words."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workers.nostr.errors import FilterError
from workers.nostr.event import Event
from workers.nostr.filters import Filter

KEYS = ["a" * 64, "b" * 64, "C" * 64]
LOWER = [key.lower() for key in KEYS]
WORDS = ["x", "y", ""]

TAG = st.one_of(
    st.tuples(st.sampled_from(["p", "e"]), st.sampled_from([*KEYS, "junk"])),
    st.tuples(st.sampled_from(["h", "d", "t", "P"]), st.sampled_from(WORDS)),
    st.tuples(st.sampled_from(["p", "h", "d"])),
)
EVENTS = st.builds(
    Event,
    id=st.sampled_from(LOWER),
    pubkey=st.sampled_from(LOWER),
    created_at=st.integers(0, 4),
    kind=st.sampled_from([0, 9, 30174]),
    tags=st.lists(TAG, max_size=4).map(tuple),
    content=st.just(""),
    sig=st.just("0" * 128),
)
KEY_LISTS = st.lists(st.sampled_from(LOWER), max_size=2)
FILTERS = st.fixed_dictionaries(
    {},
    optional={
        "ids": KEY_LISTS,
        "authors": KEY_LISTS,
        "kinds": st.lists(st.sampled_from([0, 9, 30174, 7]), max_size=2),
        "since": st.integers(0, 4),
        "until": st.integers(0, 4),
        "#p": st.lists(st.sampled_from([*KEYS, "junk"]), max_size=2),
        "#e": st.lists(st.sampled_from([*KEYS, "junk"]), max_size=2),
        "#h": st.lists(st.sampled_from(WORDS), max_size=2),
        "#d": st.lists(st.sampled_from(WORDS), max_size=2),
        "#P": st.lists(st.sampled_from(WORDS), max_size=2),
    },
)


def slow_twin(wanted: dict[str, Any], event: Event, channel: str | None) -> bool:
    for name, asked in wanted.items():
        if name == "ids":
            fits = event.id in asked
        elif name == "authors":
            fits = event.pubkey in asked
        elif name == "kinds":
            fits = event.kind in asked
        elif name == "since":
            fits = event.created_at >= asked
        elif name == "until":
            fits = event.created_at <= asked
        else:
            present = [tag[1] for tag in event.tags if tag[0] == name[1:] and len(tag) > 1]
            if name == "#p":
                present = [value.lower() for value in present if value != "junk"]
                asked = [value.lower() for value in asked]
            if name == "#h" and not present and channel is not None:
                present = [channel]
            fits = any(value in asked for value in present)
        if not fits:
            return False
    return True


@settings(deadline=None)
@given(wanted=FILTERS, event=EVENTS, channel=st.sampled_from([None, "x", "y"]))
def test_1_5_matching_agrees_with_the_slow_twin(
    wanted: dict[str, Any], event: Event, channel: str | None
) -> None:
    found = Filter.from_dict(wanted).matches(event, channel)
    assert found is slow_twin(wanted, event, channel)


def test_1_5_an_absent_or_null_list_asks_nothing() -> None:
    assert Filter.from_dict({"ids": None, "kinds": None, "limit": None, "x": 1}) == Filter()


@pytest.mark.parametrize(
    "data",
    [
        None,
        [],
        "x",
        {"ids": "x"},
        {"ids": ["x"]},
        {"ids": ["A" * 64]},
        {"authors": [1]},
        {"kinds": 9},
        {"kinds": ["9"]},
        {"kinds": [True]},
        {"kinds": [65536]},
        {"kinds": [-1]},
        {"since": "1"},
        {"until": -1},
        {"limit": 1.0},
        {"limit": False},
        {"limit": 2**63},
        {"search": 1},
        {"search": "x" * 1025},
        {"#p": None},
        {"#e": "x"},
        {"#h": [None]},
    ],
)
def test_1_5_a_malformed_filter_is_refused(data: object) -> None:
    with pytest.raises(FilterError):
        Filter.from_dict(data)


def test_1_5_the_channels_that_a_filter_names() -> None:
    assert Filter.from_dict({"#h": ["x", "y"]}).channels() == frozenset("xy")
    assert Filter.from_dict({"kinds": [9]}).channels() is None
