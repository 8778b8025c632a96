"""The operator's wish to stop."""

from __future__ import annotations

from scheduler.stop import AnyStop, StopSignal


def test_the_first_request_drains_and_the_second_cancels() -> None:
    stop = StopSignal()
    seen = []
    for _ in range(4):
        seen.append((stop.draining, stop.cancelling))
        stop.request()
    assert seen == [(False, False), (True, False), (True, True), (True, True)]


def test_of_several_wishes_the_most_urgent_counts() -> None:
    one, other = StopSignal(), StopSignal()
    both = AnyStop(one, other)
    assert not both.draining
    one.request()
    assert (both.draining, both.cancelling) == (True, False)
    other.request()
    other.request()
    assert both.cancelling
