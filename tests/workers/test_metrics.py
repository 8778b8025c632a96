from __future__ import annotations

import asyncio
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from workers.config import MetricsAddress
from workers.gateway.ledger import CallResult, LedgerLine
from workers.metrics import NODE_METRICS, SLOTS, NodeMetrics
from workers.relay import kinds
from workers.storage import open_store


def samples(metrics: NodeMetrics) -> dict[tuple[str, ...], float]:
    return {
        (sample.name, *(value for _, value in sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(metrics.exposition.text().decode())
        for sample in family.samples
    }


def test_what_is_known_beforehand_is_born_at_zero() -> None:
    found = samples(NodeMetrics(["e"], ["ok", "rate_limited"]))
    assert found[("apiary_model_requests_total", "e", "rate_limited")] == 0
    assert found[("apiary_model_tokens_total", "e", "cached_input")] == 0
    assert found[("apiary_reaped_total", "containers")] == 0
    assert [value for key, value in found.items() if key[0] == "apiary_build_info"] == [1]


def line(**changes: Any) -> LedgerLine:
    values: dict[str, Any] = {
        "request": 1,
        "agent": "solo-1",
        "endpoint": "e",
        "dialect": "chat",
        "model": "m",
        "started_s": 0.0,
        "seconds": 0.3,
        "status": 200,
        "result": CallResult.OK,
        "input_tokens": 100,
        "cached_input_tokens": 40,
        "output_tokens": 7,
        "cost_usd": 0.5,
        "streamed": False,
        "retry": None,
        "finish": "stop",
    }
    return LedgerLine.model_validate({**values, **changes})


def test_a_request_without_usage_costs_nothing_and_is_counted() -> None:
    metrics = NodeMetrics(["e"], ["ok"])
    metrics.model_request(line())
    unknown = ("input_tokens", "cached_input_tokens", "output_tokens", "cost_usd")
    metrics.model_request(line(**dict.fromkeys(unknown)))
    found = samples(metrics)
    assert found[("apiary_model_requests_total", "e", "ok")] == 2
    assert found[("apiary_model_tokens_total", "e", "input")] == 100
    assert found[("apiary_model_tokens_total", "e", "cached_input")] == 40
    assert found[("apiary_model_tokens_total", "e", "output")] == 7
    assert found[("apiary_model_cost_usd_total", "e")] == 0.5
    assert found[("apiary_model_latency_seconds_count", "e")] == 2


def test_a_request_that_nobody_forwarded_has_no_latency() -> None:
    metrics = NodeMetrics(["e"], ["ok"])
    metrics.model_request(line(endpoint=None, result=CallResult.REFUSED_TOKEN, forwarded=False))
    metrics.model_request(line(result=CallResult.REFUSED_BUDGET, forwarded=False))
    found = samples(metrics)
    assert found[("apiary_model_requests_total", "other", "refused_token")] == 1
    assert found[("apiary_model_requests_total", "e", "refused_budget")] == 1
    assert ("apiary_model_latency_seconds_count", "other") not in found
    assert found[("apiary_model_latency_seconds_count", "e")] == 0


def test_events_operations_and_gauges() -> None:
    metrics = NodeMetrics([], [])
    metrics.relay_event(9, accepted=True)
    metrics.relay_event(None, accepted=False)
    metrics.container_op("create", 0.02)
    metrics.store_op("put", "ok", 0.01)
    metrics.image_built(2.0)
    metrics.reaped("images", 3)
    metrics.exposition.live(SLOTS, lambda: 8)
    found = samples(metrics)
    assert found[("apiary_relay_events_total", "true", "9")] == 1
    assert found[("apiary_relay_events_total", "false", "other")] == 1
    assert found[("apiary_container_op_seconds_count", "create")] == 1
    assert found[("apiary_store_op_seconds_count", "put", "ok")] == 1
    assert found[("apiary_image_build_seconds_sum",)] == 2
    assert found[("apiary_reaped_total", "images")] == 3
    assert found[("apiary_slots",)] == 8


def test_every_metric_is_declared_once_and_bounded() -> None:
    names = [metric.name for metric in NODE_METRICS]
    assert len(set(names)) == len(names)
    assert all(metric.help.endswith(".") for metric in NODE_METRICS)
    assert {label for metric in NODE_METRICS for label in metric.labels} == {
        "op", "kind", "accepted", "endpoint", "result", "version", "python",
    }  # fmt: skip


def test_a_hundred_endpoints_stay_within_the_bound_whatever_agents_do() -> None:
    endpoints = [f"endpoint-{number}" for number in range(100)]
    metrics = NodeMetrics(endpoints, [each.value for each in CallResult])
    for endpoint in (*endpoints, None):
        for result in CallResult:
            metrics.model_request(line(endpoint=endpoint, result=result))
    for kind in (*kinds.KNOWN, None):
        for accepted in (True, False):
            metrics.relay_event(kind, accepted)
    # A cluster of ten such nodes and the driver's 50,000 at most are one Prometheus' easy load.
    assert len(samples(metrics)) < 5_000


class Busy:
    slots = 8
    running = 3


def test_the_node_and_its_disk_are_read_when_asked_and_may_be_unknown(tmp_path: Path) -> None:
    there: list[Busy] = []
    metrics = NodeMetrics([], [])
    metrics.watch(lambda: there[0] if there else None, tmp_path)
    found = samples(metrics)
    assert (found[("apiary_slots",)], found[("apiary_trials_running",)]) == (0, 0)
    assert found[("apiary_disk_free_bytes",)] > 0
    there.append(Busy())
    found = samples(metrics)
    assert (found[("apiary_slots",)], found[("apiary_trials_running",)]) == (8, 3)
    metrics.watch(lambda: None, tmp_path / "gone")
    free = samples(metrics)[("apiary_disk_free_bytes",)]
    assert free != free


def test_the_last_values_are_kept_beside_the_report_if_the_store_is_there(tmp_path: Path) -> None:
    metrics = NodeMetrics(["e"], ["ok"])
    (tmp_path / "file").touch()
    for folder in ("store", "file"):
        store = open_store(f"file://{tmp_path / folder}")
        asyncio.run(metrics.keep(store, "s", "node-1"))
    kept = tmp_path / "store" / "sweeps" / "s" / "report" / "metrics-node-1.txt"
    assert "apiary_build_info" in kept.read_text()
    assert (tmp_path / "file").is_file()


@pytest.mark.long
def test_they_are_served_where_they_are_wanted_and_give_way() -> None:
    metrics = NodeMetrics(["e"], ["ok"])
    with metrics.served(None) as nowhere:
        assert nowhere == ""
    with metrics.served(MetricsAddress("127.0.0.1", 0)) as first:
        port = int(first.rpartition(":")[2])
        with metrics.served(MetricsAddress("127.0.0.1", port)) as second:
            assert first != second
            for each in (first, second):
                with urllib.request.urlopen(f"http://{each}/metrics", timeout=20) as answer:
                    assert b"apiary_build_info" in answer.read()
    with metrics.served(MetricsAddress("0.0.0.0", 0)) as everywhere:
        assert not everywhere.startswith("0.0.0.0")
