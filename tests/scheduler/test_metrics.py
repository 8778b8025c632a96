"""What Prometheus would scrape."""

from __future__ import annotations

from typing import Any

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from scheduler.metrics import (
    DRIVER_METRICS,
    MOST_STANDINGS,
    SERIES_METRICS,
    SeriesMetrics,
    SweepMetrics,
    scores,
)
from scheduler.view import ConditionView, NodeView, Standing, SweepView, Watched
from workers.contract.outcome import BLAME_OF, Cause, Phase, outcome_of
from workers.contract.result import TryRecord

SWEEP = "nightly-20300101T000000Z"


def record(cause: Cause, condition: str = "a", **changes: Any) -> TryRecord:
    outcome = outcome_of(cause, Phase.SEAL)
    values: dict[str, Any] = {
        "sweep": SWEEP,
        "attempt": "0" * 32,
        "index": 0,
        "try": "1-1",
        "cell": "c",
        "condition": condition,
        "task": "buzz-native/user-mention",
        "layer": "regression",
        "verdict": outcome.verdict,
        "blame": outcome.blame,
        "phase": outcome.phase,
        "cause": cause,
        "started_at": "2030-01-01T00:00:00Z",
        "ended_at": "2030-01-01T00:00:02Z",
        "phase_seconds": {"launch": 0.5, "drive": 1.5},
        "node": "n",
        "epoch": (1, 1),
        "digests": {"task": "t", "condition": "c"},
    }
    return TryRecord.model_validate({**values, **changes})


def samples(metrics: SweepMetrics) -> dict[tuple[str, ...], float]:
    """Every sample by name and label values."""
    found = {}
    for family in text_string_to_metric_families(metrics.snapshot().decode()):
        for sample in family.samples:
            labels = (v for k, v in sorted(sample.labels.items()) if k != "sweep")
            found[(sample.name, *labels)] = sample.value
    return found


def test_every_cause_is_born_at_zero() -> None:
    found = samples(SweepMetrics(SWEEP, ["a", "b"]))
    tries = {key: value for key, value in found.items() if key[0] == "apiary_tries_total"}
    assert set(tries.values()) == {0.0}
    assert len(tries) == 2 * 2 * len(BLAME_OF)


def test_a_failure_of_the_harness_is_told_from_one_of_the_model() -> None:
    metrics = SweepMetrics(SWEEP, ["a"])
    for cause in (Cause.NONE, Cause.WRONG, Cause.WRONG, Cause.CONTAINER_LOST, Cause.RATE_LIMITED):
        metrics.ended(record(cause))
    found = samples(metrics)
    # Labels in the order of their names: blame, cause, condition, layer.
    for blame, cause, count in (
        ("none", "none", 1),
        ("model", "wrong", 2),
        ("harness", "container_lost", 1),
        ("provider", "rate_limited", 1),
        ("task", "verifier_crash", 0),
    ):
        assert found[("apiary_tries_total", blame, cause, "a", "regression")] == count
    assert found[("apiary_trial_seconds_sum",)] == pytest.approx(10.0)
    assert found[("apiary_phase_seconds_count", "drive")] == 5


def view(**changes: Any) -> SweepView:
    values: dict[str, Any] = {
        "sweep": SWEEP,
        "conditions": (
            ConditionView(
                condition="a",
                waiting=4,
                running=2,
                passed=2,
                failed=1,
                invalid=1,
                invalid_tries=3,
            ),
        ),
        "elapsed_s": 60.0,
        "attempts_per_minute": 4.0,
        "eta_s": 90.0,
        "nodes": 3,
        "stopping": False,
    }
    return SweepView(**{**values, **changes})


def test_a_canary_is_no_label() -> None:
    metrics = SweepMetrics(SWEEP, ["b"], canaries=("a",))
    before = samples(metrics).keys()
    metrics.moved(
        view(standings={Standing("a", "t", "workflow", "committed", "pass", "none", "none"): 3})
    )
    metrics.ended(record(Cause.NONE))
    after = samples(metrics)
    assert not any("a" in labels for labels in after)
    assert ("apiary_trials_total", "b") not in before
    assert after[("apiary_sweep_progress_ratio",)] == pytest.approx(0.4)
    assert after[("apiary_trial_seconds_count",)] == 1


def test_a_view_sets_the_gauges() -> None:
    metrics = SweepMetrics(SWEEP, ["a"], endpoints=("e", "f"), coverage_gate=0.9)
    Watched(metrics).moved(
        view(
            node_views=(NodeView("n", 1, 3, ""), NodeView("m", 0, 0, "disk")),
            lost_nodes=2,
            expired_leases=5,
            parked_endpoints=("f",),
            budget_share=0.5,
        )
    )
    found = samples(metrics)
    assert found[("apiary_queue_attempts", "a", "failed")] == 1
    assert found[("apiary_coverage_ratio", "a")] == pytest.approx(0.75)
    assert found[("apiary_coverage_gate_ratio",)] == 0.9
    assert found[("apiary_sweep_progress_ratio",)] == pytest.approx(0.4)
    assert found[("apiary_sweep_eta_seconds",)] == 90
    nodes = [found[("apiary_nodes", state)] for state in ("serving", "draining", "lost")]
    assert nodes == [2, 1, 2]
    assert found[("apiary_leases_expired_total",)] == 5
    assert [found[("apiary_endpoint_parked", name)] for name in ("e", "f")] == [0, 1]
    assert found[("apiary_sweep_budget_ratio",)] == 0.5


def test_what_is_no_longer_known_is_no_longer_shown() -> None:
    metrics = SweepMetrics(SWEEP, ["a"])
    standing = Standing("a", "t", "workflow", "committed", "fail", "model", "wrong")
    metrics.moved(view(standings={standing: 3}))
    key = ("apiary_attempts", "model", "wrong", "a", "committed", "t", "fail")
    assert samples(metrics)[key] == 3
    metrics.moved(view(standings={}, eta_s=None))
    found = samples(metrics)
    assert key not in found
    assert ("apiary_sweep_eta_seconds",) not in found


def test_a_series_shows_its_last_run_and_the_conditions_of_that() -> None:
    series = SeriesMetrics()
    series.planned("weekly", 604_800.0)
    series.succeeded("weekly", 1_000.0, {"a": 0.5, "b": 0.25}, 2)
    series.succeeded("nightly", 2_000.0, {"a": 1.0}, 0)
    series.succeeded("weekly", 3_000.0, {"a": 0.75}, 0)
    text = series.exposition.text().decode()
    assert 'apiary_schedule_last_success_timestamp_seconds{series="weekly"} 3000.0' in text
    assert 'apiary_schedule_period_seconds{series="weekly"} 604800.0' in text
    assert 'apiary_series_pass_ratio{condition="a",series="weekly"} 0.75' in text
    assert 'apiary_series_pass_ratio{condition="a",series="nightly"} 1.0' in text
    assert 'condition="b"' not in text
    assert 'apiary_series_regressions{series="weekly"} 0.0' in text


def test_what_a_node_holds_is_running_whatever_the_queue_calls_it() -> None:
    metrics = SweepMetrics(SWEEP, ["a"])
    held = [
        Standing("a", "t", "workflow", state, "invalid", "provider", "rate_limited")
        for state in ("leased", "running", "lost")
    ]
    metrics.moved(view(standings=dict.fromkeys(held, 2)))
    found = {key: value for key, value in samples(metrics).items() if key[0] == "apiary_attempts"}
    assert found == {
        ("apiary_attempts", "provider", "rate_limited", "a", "running", "t", "invalid"): 6
    }


def test_leases_that_expired_are_counted_once() -> None:
    metrics = SweepMetrics(SWEEP, ["a"])
    for count in (0, 2, 2, 3):
        metrics.moved(view(expired_leases=count))
    assert samples(metrics)[("apiary_leases_expired_total",)] == 3


def test_the_score_is_the_mean_of_the_workflow_tasks_rates() -> None:
    def standing(task: str, state: str, verdict: str, layer: str = "workflow") -> Standing:
        return Standing("a", task, layer, state, verdict, "", "")

    found = scores(
        SWEEP,
        {
            standing("t", "committed", "pass"): 3,
            standing("t", "dead", "invalid"): 1,
            standing("u", "committed", "fail"): 2,
            standing("u", "planned", "invalid"): 9,
            standing("v", "dead", "invalid"): 1,
            standing("w", "committed", "fail", "regression"): 7,
        },
    )
    assert found == {
        (SWEEP, "a", "strict"): pytest.approx(0.75 / 3),
        (SWEEP, "a", "valid_only"): pytest.approx(0.5),
    }
    assert scores(SWEEP, {}) == {}


def test_no_sample_of_a_try_names_an_attempt_or_a_task() -> None:
    metrics = SweepMetrics(SWEEP, ["a"])
    metrics.ended(record(Cause.WRONG))
    text = metrics.snapshot().decode()
    assert "0" * 32 not in text
    assert "user-mention" not in text


@pytest.mark.long
def test_a_thousand_tasks_under_twenty_conditions_stay_within_fifty_thousand_series() -> None:
    conditions = [f"condition-{number}" for number in range(20)]
    metrics = SweepMetrics(SWEEP, conditions, endpoints=conditions)
    standings = {
        Standing(condition, f"task-{task}", "workflow", "committed", verdict, blame, cause): 2
        for condition in conditions
        for task in range(1000)
        for verdict, blame, cause in (("pass", "none", "none"), ("fail", "model", "wrong"))
    }
    assert len(standings) > MOST_STANDINGS
    metrics.moved(view(standings=standings))
    for number in range(1000):
        metrics.ended(record(Cause.WRONG, conditions[number % 20], attempt=f"{number:032x}"))
    found = samples(metrics)
    assert len(found) < 50_000
    told = {key: value for key, value in found.items() if key[0] == "apiary_attempts"}
    assert sum(told.values()) == sum(standings.values())
    # Tasks that were not told apart once are not told apart later: nothing comes and goes.
    few = dict(list(standings.items())[:100])
    metrics.moved(view(standings=few))
    assert {key[-2] for key in samples(metrics) if key[0] == "apiary_attempts"} == {""}
    whole = SweepMetrics(SWEEP, conditions, endpoints=conditions)
    whole.moved(view(standings=dict(list(standings.items())[:MOST_STANDINGS])))
    found = samples(whole)
    assert len({key for key in found if key[0] == "apiary_attempts"}) == MOST_STANDINGS
    assert len(found) < 50_000


def test_every_metric_is_declared_once_and_says_what_it_is() -> None:
    declared = (*DRIVER_METRICS, *SERIES_METRICS)
    names = [metric.name for metric in declared]
    assert len(set(names)) == len(names)
    for metric in declared:
        assert metric.help.endswith("."), metric.name
        assert {"attempt", "try", "trial"}.isdisjoint(metric.labels), metric.name
