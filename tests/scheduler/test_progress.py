"""What a running sweep shows."""

from __future__ import annotations

import pytest

from scheduler.progress import MAKING_SHARE, Pace, Standings, sweep_view
from scheduler.queue import Counts
from scheduler.view import Standing
from tests.scheduler.builders import cells


def test_pace_is_of_the_last_minute_or_since_the_start() -> None:
    pace = Pace(100.0)
    assert pace.per_minute(100.0) == 0.0
    pace.note(110.0, 5)
    assert pace.per_minute(110.0) == 30.0
    pace.note(160.0, 7)
    assert pace.per_minute(160.0) == pytest.approx(12.0)
    assert pace.per_minute(171.0) == 7.0
    assert pace.per_minute(300.0) == 0.0
    assert pace.elapsed_s(300.0) == 200.0


def test_every_attempt_is_counted_in_one_field() -> None:
    counts = Counts(planned=10, held=3, passed=4, failed=2, dead=1, parked=5, invalid_tries=6)
    pace = Pace(0.0)
    pace.note(30.0, 6)
    view = sweep_view("s", {"solver": counts}, pace, 60.0, nodes=2, stopping=True)
    (shown,) = view.conditions
    assert shown.condition == "solver"
    assert (shown.waiting, shown.running, shown.passed) == (15, 3, 4)
    assert (shown.failed, shown.invalid, shown.invalid_tries) == (2, 1, 6)
    assert shown.waiting + shown.running + shown.passed + shown.failed + shown.invalid == (
        counts.total
    )
    assert view.attempts_per_minute == 6.0
    assert view.eta_s == pytest.approx(130.0)
    assert (view.nodes, view.stopping, view.elapsed_s) == (2, True, 60.0)


def test_there_is_no_estimate_before_anything_ended() -> None:
    view = sweep_view("s", {"a": Counts(planned=1)}, Pace(0.0), 5.0, nodes=0, stopping=False)
    assert view.eta_s is None


def test_attempts_stand_by_condition_task_and_layer_with_what_the_cause_implies() -> None:
    made = cells(tasks=1, conditions=2)
    one, other = made
    found = Standings(made).of(
        lambda: [
            (one, "committed", "wrong", 2),
            (one, "planned", "", 1),
            (other, "dead", "rate_limited", 3),
        ]
    )
    assert found == {
        Standing("condition-0", "buzz-native/task-0", "workflow", *rest): count
        for *rest, count in (("committed", "fail", "model", "wrong", 2), ("planned", "", "", "", 1))
    } | {
        Standing(
            "condition-1", "buzz-native/task-0", "workflow",
            "dead", "invalid", "provider", "rate_limited",
        ): 3
    }  # fmt: skip


def test_standings_that_take_long_to_make_are_made_less_often() -> None:
    now, asked = 0.0, 0

    def counted() -> list[tuple[str, str, str, int]]:
        nonlocal now, asked
        now, asked = now + 0.1, asked + 1
        return []

    standings = Standings({}, lambda: now)
    first = standings.of(counted)
    now += 0.1 * MAKING_SHARE - 0.01
    assert standings.of(counted) is first
    assert asked == 1
    assert standings.of(counted, anew=True) is not first
    now += 0.1 * MAKING_SHARE + 0.01
    standings.of(counted)
    assert asked == 3
