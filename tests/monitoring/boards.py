"""What the shipped dashboards and rules ask of Prometheus."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import yaml

from scheduler.metrics import DRIVER_METRICS, SERIES_METRICS
from tests.flow.sweeps import ROOT
from workers.metrics import NODE_METRICS

MONITORING = ROOT / "deploy" / "monitoring"
DASHBOARDS = sorted((MONITORING / "grafana" / "dashboards").glob("*.json"))
DECLARED = {each.exposed: each for each in (*DRIVER_METRICS, *NODE_METRICS, *SERIES_METRICS)}
NAME = re.compile(r"\bapiary[_:][a-z0-9_:]+")
PARTS = ("_bucket", "_sum", "_count")


class Panel(NamedTuple):
    """One query of one panel."""

    board: str
    title: str
    expression: str
    legend: str
    """With ``{{label}}`` where a series' own is to be put."""


class Rule(NamedTuple):
    """A recording or an alert rule."""

    name: str
    expression: str
    is_alert: bool


def panels() -> Iterator[Panel]:
    """Every query of every panel."""
    for path in DASHBOARDS:
        for panel in json.loads(path.read_text())["panels"]:
            for target in panel["targets"]:
                legend = target.get("legendFormat", "")
                yield Panel(path.stem, panel["title"], target["expr"], legend)


def rules() -> Iterator[Rule]:
    """Every rule."""
    for name in ("rules.yml", "alerts.yml"):
        document: Any = yaml.safe_load((MONITORING / "prometheus" / name).read_text())
        for group in document["groups"]:
            for rule in group["rules"]:
                title = rule.get("record") or rule["alert"]
                yield Rule(title, rule["expr"], "alert" in rule)


def declared_name(name: str) -> str:
    """Of a series' name, what is declared: a histogram's is followed by its part."""
    for part in PARTS:
        bare = name.removesuffix(part)
        if bare != name and DECLARED.get(bare) and DECLARED[bare].kind == "histogram":
            return bare
    return name


def names(expression: str) -> set[str]:
    """The metrics and recorded series that an expression reads."""
    return {declared_name(name) for name in NAME.findall(expression)}
