from __future__ import annotations

from scheduler.report.score import score
from scheduler.serve.render import TIMELINE, blames, timeline
from tests.scheduler.report.builders import cell, record, results
from workers.contract.outcome import Cause

SUMMARY = score(
    results(
        cell("p iip f", condition="one"),
        cell("p iiii", condition="two"),
        cell("rp rrp", condition="two", task="farewell", layer="regression"),
    )
)


def test_causes_are_summed_over_tasks_and_conditions() -> None:
    rows = [(row.blame, row.cause, row.conditions, row.tasks, row.tries) for row in blames(SUMMARY)]
    assert rows == [
        ("harness", "container_lost", ("two", "one"), 1, 6),
        ("provider", "rate_limited", ("two",), 1, 3),
        ("model", "wrong", ("one",), 1, 1),
    ]


def test_phases_stand_side_by_side() -> None:
    made = record(Cause.NONE, "a" * 32, 1, phase_seconds={"verify": 1.0, "drive": 3.0, "seal": 0.0})
    assert timeline(made) == [
        ("drive", 3.0, 0.0, 750.0),
        ("verify", 1.0, 750.0, 250.0),
        ("seal", 0.0, float(TIMELINE), 1.0),
    ]
    assert timeline(record(Cause.NONE, "a" * 32, 1, phase_seconds={})) == []
