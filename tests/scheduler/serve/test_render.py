from __future__ import annotations

from scheduler.report.score import score
from scheduler.serve.render import TIMELINE, behaviours_kept, blames, timeline
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


def test_behaviours_that_were_kept_are_counted_by_condition() -> None:
    mixed = results(
        cell("p p", condition="one"),
        cell("p p", condition="one", task="thread", layer="regression"),
        cell("p f", condition="one", task="mention", layer="regression"),
        cell("p iii", condition="two", task="thread", layer="regression"),
    )
    digests = {each.condition: each.digest for each in score(mixed).conditions}
    kept = behaviours_kept(score(mixed))
    assert kept == {digests["one"]: (1, 2), digests["two"]: (0, 1)}
    assert behaviours_kept(score(results(cell("p p")))) == {}
