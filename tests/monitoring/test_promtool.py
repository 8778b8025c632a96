"""Configuration and rules, as Prometheus' own tool sees them."""

from __future__ import annotations

import re
import shutil
import subprocess
import urllib.request
from pathlib import Path

import pytest

from scheduler.metrics import SeriesMetrics, SweepMetrics
from scheduler.view import ConditionView, Standing, SweepView
from tests.monitoring.boards import MONITORING
from workers.exposition import served
from workers.metrics import NodeMetrics

pytestmark = pytest.mark.long

FOLDER = MONITORING / "prometheus"


def promtool(folder: Path, *arguments: str) -> tuple[int, str]:
    done = subprocess.run(
        ["promtool", *arguments], cwd=folder, capture_output=True, text=True, timeout=120
    )
    return done.returncode, done.stdout + done.stderr


def test_configuration_and_rules_are_sound() -> None:
    for arguments in (
        ("check", "config", "prometheus.yml"),
        ("check", "rules", "rules.yml", "alerts.yml"),
    ):
        code, said = promtool(FOLDER, *arguments)
        assert code == 0, said


def test_every_case_of_the_rules_holds() -> None:
    code, said = promtool(FOLDER, "test", "rules", "rules_test.yml")
    assert code == 0, said


def test_names_units_and_help_are_as_prometheus_wants_them() -> None:
    sweep = SweepMetrics("s", ["a"], endpoints=("e",), coverage_gate=0.9)
    standing = Standing("a", "t", "workflow", "committed", "fail", "model", "wrong")
    condition = ConditionView("a", 1, 1, 1, 1, 1, 1)
    sweep.moved(
        SweepView(
            "s", (condition,), 1.0, 1.0, 2.0, 1, False, standings={standing: 2}, budget_share=0.2
        )
    )
    series = SeriesMetrics()
    series.planned("weekly", 1.0)
    series.succeeded("weekly", 1.0, {"a": 1.0}, 0)
    node = NodeMetrics(["e"], ["ok"])
    node.container_op("create", 1.0)
    node.relay_event(9, accepted=True)
    node.store_op("put", "ok", 1.0)
    for each in (sweep.exposition, series.exposition, node.exposition):
        with served(each, 0, "127.0.0.1") as url, urllib.request.urlopen(url, timeout=20) as page:
            text = page.read().decode()
        declared = {metric.exposed for metric in each.metrics}
        shown = set(
            re.findall(r"^(apiary_\w+?)(?:_bucket|_sum|_count)?(?:{| )", text, re.MULTILINE)
        )
        # Only a gauge that has nothing to say yet is not there.
        assert shown <= declared
        done = subprocess.run(
            ["promtool", "check", "metrics"], input=text, capture_output=True, text=True, timeout=60
        )
        assert (done.returncode, done.stdout + done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("alert", "old", "new"),
    [
        ("ApiaryHarnessFailures", "> 0.1", "> 0.9"),
        ("ApiaryProviderFailures", ">= 10", ">= 1000"),
        ("ApiaryUnclassified", ") > 0", ") > 9"),
        ("ApiaryQueueStuck", "for: 25m", "for: 1m"),
        ("ApiaryNodeLost", "> 0", ">= 0"),
        ("ApiaryCoverageAtRisk", "coverage_ratio < on", "coverage_ratio > on"),
        ("ApiaryEndpointParked", "== 1", "== 0"),
        ("ApiaryEndpointThrottled", "> 0.2", "> 0.05"),
        ("ApiarySeriesLate", "> 1.25", "> 1"),
        ("ApiarySeriesRegressed", "> 0", ">= 0"),
        ("ApiaryDiskLow", "< 10e9", "< 12e9"),
        ("ApiaryStoreErrors", "> 5", "> 2"),
        ("ApiaryBudgetNearlySpent", "> 0.9", "> 0.8"),
        ("ApiaryTargetDown", "== 0", ">= 0"),
    ],
)
def test_the_cases_notice_a_wrong_rule(tmp_path: Path, alert: str, old: str, new: str) -> None:
    for name in ("rules.yml", "alerts.yml", "rules_test.yml"):
        shutil.copy(FOLDER / name, tmp_path)
    text = (FOLDER / "alerts.yml").read_text()
    before, begin, rest = text.partition(f"- alert: {alert}\n")
    rule, end, after = rest.partition("      - alert:")
    assert old in rule
    (tmp_path / "alerts.yml").write_text(before + begin + rule.replace(old, new) + end + after)
    code, said = promtool(tmp_path, "test", "rules", "rules_test.yml")
    assert code != 0
    assert re.search(alert, said)
