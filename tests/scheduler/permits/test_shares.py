"""Dividing what there is by what is wanted."""

from __future__ import annotations

import random

import pytest

from scheduler.permits.shares import shares, whole_shares


def test_what_is_left_over_is_divided_evenly() -> None:
    assert shares(30, {"a": 9, "b": 3, "c": 0}) == pytest.approx(
        {"a": 9 + 17 / 3, "b": 3 + 17 / 3, "c": 1 + 17 / 3}
    )


def test_where_it_is_short_everybody_gets_by_what_is_wanted() -> None:
    assert shares(10, {"a": 30, "b": 10}) == pytest.approx({"a": 7.5, "b": 2.5})


def test_whole_shares_sum_up_to_the_whole_whatever_was_owed() -> None:
    draw = random.Random(1)
    for _ in range(500):
        wanted = {str(n): draw.choice([0.0, 1.0, 7.0, 50.0]) for n in range(draw.randint(1, 9))}
        owed = {name: draw.uniform(-1, 1) for name in wanted}
        whole = draw.randint(1, 60)
        given = whole_shares(whole, wanted, owed)
        assert sum(given.values()) == whole
        assert min(given.values()) >= 0


def test_one_permit_goes_round_among_those_who_want_it() -> None:
    owed = dict.fromkeys("abc", 0.0)
    wanted = {"a": 50.0, "b": 5.0, "c": 5.0}
    got = dict.fromkeys("abc", 0)
    for _ in range(60):
        given, exact = whole_shares(1, wanted, owed), shares(1, wanted)
        for name in got:
            got[name] += given[name]
            owed[name] = max(-1.0, min(1.0, owed[name] + exact[name] - given[name]))
    assert got["a"] == pytest.approx(50, abs=3)
    assert min(got.values()) >= 4
