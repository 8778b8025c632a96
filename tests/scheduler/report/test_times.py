from __future__ import annotations

from dataclasses import replace

import pytest

import scheduler.report.times
from scheduler.report.charts import WIDTH
from scheduler.report.results import AttemptResults, SweepResults
from scheduler.report.times import LANE, phase_times, timeline
from tests.scheduler.report.builders import attempt, cell, results


def ran(index: int, node: str, start: int, end: int) -> AttemptResults:
    """An attempt that ran on a node for these seconds of a minute."""
    return attempt(
        "p",
        index,
        node=node,
        started_at=f"2026-01-01T00:00:{start:02}.000Z",
        ended_at=f"2026-01-01T00:00:{end:02}.000Z",
    )


def of(*attempts: AttemptResults) -> SweepResults:
    return results(replace(cell("p"), attempts=attempts))


def test_times_of_phases_over_all_tries() -> None:
    made = results(cell("ip p p"))
    drive, verify = phase_times(made)
    assert (drive.phase, drive.tries, drive.median, drive.ninetieth) == ("drive", 4, 1.0, 1.0)
    assert drive.share == pytest.approx(2 / 3)
    assert verify.longest == 0.5
    assert phase_times(results(cell("-"))) == ()


def test_tries_at_the_same_time_lie_in_rows_of_their_own() -> None:
    made = timeline(
        of(ran(0, "a", 0, 10), ran(1, "a", 5, 15), ran(2, "a", 10, 20), ran(3, "b", 0, 20))
    )
    a, b = made.lanes
    assert (a.node, a.at_once, a.height, b.at_once) == ("a", 2, 2 * LANE, 1)
    assert [(bar.x, bar.y, bar.width) for bar in a.bars] == [
        (0.0, 0, WIDTH / 2),
        (WIDTH / 4, LANE, WIDTH / 2),
        (WIDTH / 2, 0, WIDTH / 2),
    ]
    assert made.seconds == 20


def test_a_sweep_without_tries_has_no_timeline() -> None:
    assert timeline(results(cell("- -"))).lanes == ()


def test_more_tries_than_can_be_seen_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scheduler.report.times, "TIMELINE_TRIES", 2)
    made = timeline(of(*(ran(each, "a", each, each + 1) for each in range(5))))
    assert (len(made.lanes[0].bars), made.left_out, made.seconds) == (2, 3, 2)
