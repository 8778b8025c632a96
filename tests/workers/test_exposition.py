from __future__ import annotations

import json
import socket
import urllib.error
import urllib.request

import pytest
from prometheus_client.parser import text_string_to_metric_families

from workers.exposition import Exposition, Metric, MetricsAddressError, served

EVENTS = Metric("events", "counter", "Events.", labels=("kind",))
WEIGHT = Metric("weight", "gauge", "Weight.", "bytes", labels=("a", "b"))
TIMES = Metric("op_seconds", "histogram", "Times.", "seconds", buckets=(0.1, 1.0))
PLAIN = Metric("plain", "counter", "A count.")
ALL = (EVENTS, WEIGHT, TIMES, PLAIN)


def samples(exposition: Exposition) -> dict[str, float]:
    lines = exposition.text().decode().splitlines()
    pairs = (line.rpartition(" ") for line in lines if not line.startswith("#"))
    return {name: float(value) for name, _, value in pairs}


def test_declared_metrics_have_their_names_and_no_time_of_birth() -> None:
    made = Exposition(ALL)
    made.born(EVENTS, ("x",))
    assert samples(made) == {
        'apiary_events_total{kind="x"}': 0.0,
        'apiary_op_seconds_bucket{le="0.1"}': 0.0,
        'apiary_op_seconds_bucket{le="1.0"}': 0.0,
        'apiary_op_seconds_bucket{le="+Inf"}': 0.0,
        "apiary_op_seconds_count": 0.0,
        "apiary_op_seconds_sum": 0.0,
        "apiary_plain_total": 0.0,
    }
    assert [metric.exposed for metric in ALL] == [
        "apiary_events_total",
        "apiary_weight",
        "apiary_op_seconds",
        "apiary_plain_total",
    ]


def test_values_are_kept() -> None:
    made = Exposition(ALL)
    made.add(EVENTS, 2, ("x",))
    made.add(PLAIN)
    made.observe(TIMES, 0.5)
    made.set(WEIGHT, 3.0, ("p", "q"))
    told = samples(made)
    assert told['apiary_events_total{kind="x"}'] == 2
    assert told["apiary_plain_total"] == 1
    assert told['apiary_op_seconds_bucket{le="1.0"}'] == 1
    assert told['apiary_weight{a="p",b="q"}'] == 3
    with pytest.raises(ValueError, match="non-negative"):
        made.add(PLAIN, -1)


def test_series_that_are_gone_are_taken_away() -> None:
    made = Exposition([WEIGHT])
    made.replace(WEIGHT, {("a", "b"): 1.0, ("c", "d"): 2.0})
    made.replace(WEIGHT, {("c", "d"): 3.0, ("e", "f"): 4.0})
    assert samples(made) == {
        'apiary_weight{a="c",b="d"}': 3.0,
        'apiary_weight{a="e",b="f"}': 4.0,
    }
    made.replace(WEIGHT, {})
    assert samples(made) == {}


def test_it_ends_as_openmetrics_must() -> None:
    assert Exposition(ALL).text().endswith(b"# EOF\n")


def test_a_scraper_gets_values_and_targets() -> None:
    made = Exposition([PLAIN])
    targets = [{"targets": ["127.0.0.1:1"], "labels": {"node": "n"}}]
    with served(made, 0, "127.0.0.1", lambda: targets) as url:
        made.add(PLAIN)
        with urllib.request.urlopen(url, timeout=20) as answer:
            [family] = text_string_to_metric_families(answer.read().decode())
        assert family.samples[0].value == 1
        with urllib.request.urlopen(url.replace("/metrics", "/targets"), timeout=20) as answer:
            assert json.load(answer) == targets
        with pytest.raises(urllib.error.HTTPError, match="404"):
            urllib.request.urlopen(url.replace("/metrics", "/"), timeout=20)
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(url, timeout=5)


def test_a_taken_port_gives_way_to_a_free_one() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with served(Exposition([PLAIN]), port, "127.0.0.1") as url:
            assert f":{port}/" not in url
            with urllib.request.urlopen(url, timeout=20) as answer:
                assert answer.status == 200


def test_an_address_of_another_machine_is_refused() -> None:
    with (
        pytest.raises(MetricsAddressError, match=r"192\.0\.2\.1 port 0"),
        served(Exposition([PLAIN]), 0, "192.0.2.1"),
    ):
        pass
