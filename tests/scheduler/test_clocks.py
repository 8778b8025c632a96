"""Wall clocks compared: what is certain, and what the way of an answer may explain."""

from __future__ import annotations

import pytest

from scheduler.clocks import MAX_SKEW_S, read_clock, skew_text


def test_half_the_way_is_not_skew() -> None:
    # Asked at 100, held for 3 s, answered at 104: the answer was made at 103.5.
    reading = read_clock(103.5, our_s=104.0, took_s=4.0, held_s=3.0)
    assert reading.ahead_s == pytest.approx(0.0)
    assert reading.error_s == pytest.approx(0.5)
    assert reading.skew_s is None


@pytest.mark.parametrize("ahead", [3600.0, -3600.0])
def test_an_hour_is_told_to_a_tenth_of_a_second(ahead: float) -> None:
    reading = read_clock(1000.04 + ahead, our_s=1000.0, took_s=0.0)
    assert reading.skew_s == ahead


def test_what_a_slow_answer_explains_is_not_told() -> None:
    assert read_clock(1004.0, our_s=1000.0, took_s=20.0).skew_s is None
    assert read_clock(1012.0, our_s=1000.0, took_s=2.0).skew_s is not None


def test_a_little_is_not_told() -> None:
    assert read_clock(1000.0 + MAX_SKEW_S, our_s=1000.0, took_s=0.0).skew_s is None


def test_a_clock_of_whole_seconds_is_taken_at_their_middle() -> None:
    reading = read_clock(1000.0, our_s=1000.5, took_s=0.0, step_s=1.0)
    assert (reading.ahead_s, reading.error_s) == (0.0, 0.5)


def test_a_node_that_held_longer_than_it_took_is_no_error() -> None:
    assert read_clock(1000.0, our_s=1000.0, took_s=1.0, held_s=2.0).error_s == 0.0


def test_the_sentence_names_the_side() -> None:
    assert "node a is 7.0 s behind the driver's" in skew_text("the clock of node a", -7.0)
    assert "ahead of" in skew_text("x", 7.0)
