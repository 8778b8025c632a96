"""The operator's wish to stop."""

from __future__ import annotations

from scheduler.stop import StopSignal


def test_the_first_request_drains_and_the_second_cancels() -> None:
    stop = StopSignal()
    seen = []
    for _ in range(4):
        seen.append((stop.draining, stop.cancelling))
        stop.request()
    assert seen == [(False, False), (True, False), (True, True), (True, True)]
