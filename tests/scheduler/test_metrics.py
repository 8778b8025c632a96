"""What Prometheus would scrape."""

from __future__ import annotations

import socket
import urllib.request
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from scheduler.errors import MetricsAddressError
from scheduler.metrics import SweepMetrics, Watched, served
from scheduler.view import ConditionView, SweepView
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
    assert found[("apiary_try_seconds_sum",)] == pytest.approx(10.0)
    assert found[("apiary_phase_seconds_count", "drive")] == 5


def test_a_view_sets_the_gauges() -> None:
    metrics = SweepMetrics(SWEEP, ["a"])
    view = SweepView(
        sweep=SWEEP,
        conditions=(
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
        elapsed_s=60.0,
        attempts_per_minute=4.0,
        eta_s=90.0,
        nodes=3,
        stopping=False,
    )
    Watched(metrics).moved(view)
    found = samples(metrics)
    assert found[("apiary_queue_attempts", "a", "failed")] == 1
    assert found[("apiary_sweep_progress_ratio",)] == pytest.approx(0.4)
    assert found[("apiary_sweep_eta_seconds",)] == 90
    assert found[("apiary_nodes",)] == 3


def test_no_sample_names_an_attempt_or_a_task() -> None:
    metrics = SweepMetrics(SWEEP, ["a"])
    metrics.ended(record(Cause.WRONG))
    text = metrics.snapshot().decode()
    assert "0" * 32 not in text
    assert "user-mention" not in text


def test_the_number_of_series_does_not_grow_with_tries() -> None:
    metrics = SweepMetrics(SWEEP, [f"condition-{number}" for number in range(20)])
    before = len(samples(metrics))
    for number in range(1000):
        metrics.ended(record(Cause.WRONG, f"condition-{number % 20}", attempt=f"{number:032x}"))
    assert len(samples(metrics)) == before < 50_000


def test_it_is_served_while_open_and_the_port_is_free_again() -> None:
    metrics = SweepMetrics(SWEEP, ["a"])
    with served(metrics, 0, "127.0.0.1") as url:
        assert url is not None
        with urllib.request.urlopen(url, timeout=10) as answer:
            assert b"apiary_tries_total" in answer.read()
        port = int(url.split(":")[2].split("/")[0])
    with socket.create_server(("127.0.0.1", port)):
        pass


def test_a_taken_port_is_told() -> None:
    metrics = SweepMetrics(SWEEP, ["a"])
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with (
            pytest.raises(MetricsAddressError, match=f"port {port}"),
            served(metrics, port, "127.0.0.1"),
        ):
            pass


def test_nothing_is_served_where_nobody_asked() -> None:
    with served(SweepMetrics(SWEEP, []), None, "127.0.0.1") as url:
        assert url is None
