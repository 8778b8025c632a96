"""What a lock says of itself."""

from __future__ import annotations

from scheduler.manifest import Scoring
from scheduler.report.sides import unlike
from tests.scheduler.report.generated import make_lock
from workers.contract.spec import TimeoutMultipliers


def test_results_under_other_limits_or_thresholds_are_another_line_of_a_trend() -> None:
    plain = make_lock()
    condition = plain.conditions[0].digest
    assert plain.line_of(condition) == condition
    lines = {
        make_lock(**changes).line_of(condition)
        for changes in (
            {},
            {"timeout_multipliers": TimeoutMultipliers(agent=2.0)},
            {"timeout_multipliers": TimeoutMultipliers(verifier=2.0)},
            {"scoring": Scoring(pass_threshold=0.5)},
        )
    }
    assert len(lines) == 4
    assert make_lock(scoring=Scoring(coverage_gate=0.5)).line_of(condition) == condition


def test_two_sweeps_under_other_limits_are_told_apart_in_a_comparison() -> None:
    plain = make_lock()
    other = make_lock(
        timeout_multipliers=TimeoutMultipliers(agent=2.0, verifier=0.5),
        scoring=Scoring(pass_threshold=0.5),
    )
    assert list(unlike(plain, plain)) == []
    assert list(unlike(plain, other)) == [
        "pass threshold: 1.0 and 0.5",
        "timeout multipliers: 1 and agent 2, verifier 0.5",
    ]
