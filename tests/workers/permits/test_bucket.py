"""A token bucket."""

from __future__ import annotations

import math

import pytest

from workers.permits.bucket import Bucket


def limited(rate: float) -> Bucket:
    bucket = Bucket()
    bucket.set_rate(rate, 0.0)
    return bucket


def test_without_a_rate_nothing_waits() -> None:
    bucket = Bucket()
    bucket.take(1e9, 0.0)
    assert bucket.wait_s(0.0) == 0.0


@pytest.mark.parametrize("rate", [0.1, 1.0, 7.0, 500.0])
def test_no_stretch_of_time_lets_more_pass_than_its_rate_and_one_burst(rate: float) -> None:
    bucket, now, passed = limited(rate), 0.0, 0
    while now < 100.0 / rate:
        wait = bucket.wait_s(now)
        now += wait
        if not wait:
            bucket.take(1.0, now)
            passed += 1
    assert passed <= 100 + max(1.0, rate) + 1
    assert passed >= 99


def test_a_debt_is_paid_before_the_next_passes() -> None:
    bucket = limited(10.0)
    bucket.take(110.0, 0.0)
    assert bucket.wait_s(0.0) == pytest.approx(10.1)
    bucket.take(-60.0, 0.0)
    assert bucket.wait_s(0.0) == pytest.approx(4.1)


def test_a_higher_rate_counts_at_once_and_none_is_endless() -> None:
    bucket = limited(0.0)
    bucket.take(1.0, 0.0)
    assert bucket.wait_s(5.0) == math.inf
    bucket.set_rate(2.0, 5.0)
    assert bucket.wait_s(5.0) <= 1.0
    bucket.set_rate(None, 5.0)
    assert bucket.wait_s(5.0) == 0.0


def test_a_refusal_voids_what_had_gathered() -> None:
    bucket = limited(10.0)
    assert bucket.wait_s(50.0) == 0.0
    bucket.empty(50.0)
    assert bucket.wait_s(50.0) == pytest.approx(0.1)
