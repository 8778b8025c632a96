from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from scheduler.cli.options import MetricsOptions
from scheduler.cli.prometheus import watched_by_prometheus
from scheduler.metrics import SweepMetrics
from scheduler.view import NodeView, SweepView
from workers.exposition import MetricsAddressError

SWEEP = "nightly-20300101T000000Z"


def view(*nodes: NodeView) -> SweepView:
    return SweepView(SWEEP, (), 1.0, 0.0, None, len(nodes), stopping=False, node_views=nodes)


def test_nothing_is_served_where_nobody_asked() -> None:
    with watched_by_prometheus(SweepMetrics(SWEEP, []), MetricsOptions()) as seen:
        assert seen.url is None
        assert seen.targets() == []
        started = time.monotonic()
        seen.linger(lambda: False)
        assert time.monotonic() - started < 5


def test_driver_and_nodes_are_found_while_they_are_there(tmp_path: Path) -> None:
    path = tmp_path / "targets.json"
    options = MetricsOptions(port=0, targets=path)
    with watched_by_prometheus(SweepMetrics(SWEEP, ["a"]), options) as seen:
        assert seen.url is not None
        own = {"targets": [seen.url.split("/")[2]], "labels": {"role": "driver"}}
        assert json.loads(path.read_text()) == [own]
        seen.moved(view(NodeView("n", 0, 1, "", "127.0.0.1:9001"), NodeView("m", 0, 1, "")))
        labels = {"role": "node", "node": "n", "sweep": SWEEP}
        node = {"targets": ["127.0.0.1:9001"], "labels": labels}
        assert json.loads(path.read_text()) == [own, node]
        with urllib.request.urlopen(seen.url.replace("/metrics", "/targets"), timeout=20) as answer:
            assert json.load(answer) == [own, node]
        seen.moved(view())
        assert json.loads(path.read_text()) == [own]
        url = seen.url
    assert json.loads(path.read_text()) == []
    assert [each.name for each in tmp_path.iterdir()] == ["targets.json"]
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(url, timeout=5)


def test_the_last_values_stay_until_the_operator_has_had_enough() -> None:
    with watched_by_prometheus(SweepMetrics(SWEEP, ["a"]), MetricsOptions(port=0)) as seen:
        asked = iter([False, False, True])
        seen.linger(lambda: next(asked))
        assert next(asked, None) is None


def test_a_file_of_targets_that_cannot_be_written_is_told_at_the_start(tmp_path: Path) -> None:
    options = MetricsOptions(targets=tmp_path / "nowhere" / "targets.json")
    with (
        pytest.raises(MetricsAddressError, match="No such file or directory"),
        watched_by_prometheus(SweepMetrics(SWEEP, []), options),
    ):
        pass


def test_a_file_that_fails_later_does_not_end_the_sweep(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    options = MetricsOptions(targets=folder / "targets.json")
    with watched_by_prometheus(SweepMetrics(SWEEP, []), options) as seen:
        (folder / "targets.json").unlink()
        folder.rmdir()
        seen.moved(view(NodeView("n", 0, 1, "", "127.0.0.1:9001")))
        assert "cannot be written" in seen.fault


def test_a_node_of_this_machine_serves_beside_its_driver_or_not_at_all() -> None:
    assert MetricsOptions().of_nodes == ""
    assert MetricsOptions(port=9464, address="0.0.0.0").of_nodes == "0.0.0.0:0"
    assert MetricsOptions(port=0, address="::1").of_nodes == "[::1]:0"
