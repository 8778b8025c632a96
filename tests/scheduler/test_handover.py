"""An older driver's end: first it waits, then it insists, and it is bounded."""

from __future__ import annotations

from scheduler.handover import Handover
from scheduler.stop import GiveWay
from tests.scheduler.builders import SWEEP
from tests.scheduler.fakes import FakeObserver

WAY = GiveWay("driver 2 on host b runs it", at_once=False)


def handover() -> tuple[Handover, FakeObserver]:
    observer = FakeObserver()
    return Handover(SWEEP, observer, finish_s=60.0, cancel_s=180.0), observer


def test_trials_may_finish_then_they_are_ended_then_they_are_left() -> None:
    made, observer = handover()
    assert not made.stop.draining
    made.begin(WAY, 3, 100.0)
    assert made.stop.draining
    assert observer.notes == ["driver 2 on host b runs it; 3 running trials may finish for 60 s"]
    assert made.end(WAY, busy=True, now=159.0) is None
    assert not made.stop.cancelling
    assert made.end(WAY, busy=True, now=161.0) is None
    assert made.stop.cancelling
    assert made.end(WAY, busy=True, now=340.0) is None
    end = made.end(WAY, busy=True, now=341.0)
    assert end is not None
    assert end.gave_way
    assert (end.state, end.reason, end.nodes_taken_over) == ("infrastructure", WAY.reason, False)


def test_where_nothing_runs_it_ends_at_once() -> None:
    made, observer = handover()
    made.begin(WAY, 0, 100.0)
    assert made.end(WAY, busy=False, now=100.0) is not None
    assert observer.notes == []


def test_nodes_that_the_newer_driver_adopts_are_not_waited_for() -> None:
    made, observer = handover()
    way = GiveWay("driver 2", at_once=True)
    made.begin(way, 3, 100.0)
    end = made.end(way, busy=True, now=100.0)
    assert end is not None
    assert end.nodes_taken_over
    assert observer.notes == []
