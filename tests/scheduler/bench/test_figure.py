from __future__ import annotations

import json

import pytest

from scheduler.bench.figure import Figure


def test_samples_are_told_by_their_median_and_ends() -> None:
    made = Figure.of("wait", [3.0, 1.0, 10.0], "s", 1.5, "the other")
    assert (made.value, made.low, made.high, made.n, made.ratio) == (3.0, 1.0, 10.0, 3, 2.0)


def test_pairs_are_compared_one_by_one_since_both_sides_of_a_pair_met_the_same_machine() -> None:
    # The machine slowed down to a tenth: the medians' ratio says 1, each pair says 2.
    made = Figure.by_turns("rate", [20.0, 2.0], [10.0, 1.0])
    assert (made.ratio, made.ratio_low, made.ratio_high) == (2.0, 2.0, 2.0)
    drifting = Figure.by_turns("rate", [10.0, 4.0, 1.0], [5.0, 4.0, 2.0])
    assert (drifting.value, drifting.reference) == (4.0, 4.0)
    assert (drifting.ratio, drifting.ratio_low, drifting.ratio_high) == (1.0, 0.5, 2.0)


def test_a_reference_of_nothing_gives_no_ratio() -> None:
    assert Figure.one("lost", 0, "", 0, "promised").ratio is None
    assert Figure.by_turns("rate", [1.0], [0.0]).ratio is None


def test_a_machine_reads_every_field() -> None:
    told = json.loads(Figure.of("wait", [1.0], "s").to_json())
    assert {"name", "value", "unit", "reference", "ratio", "low", "high", "n"} <= told.keys()


@pytest.mark.parametrize(
    "make",
    [lambda: Figure.of("wait", []), lambda: Figure.by_turns("wait", [1.0], [1.0, 2.0])],
)
def test_a_figure_without_samples_or_with_half_pairs_is_refused(make: object) -> None:
    assert callable(make)
    with pytest.raises(ValueError, match=r"wait|zip"):
        make()
