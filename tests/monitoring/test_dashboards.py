"""The files of deploy/monitoring, without a Prometheus."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models.dashboard import Dashboard

from deploy.monitoring.dashboards import BOARDS, text
from docs.write_metrics import PAGE, page
from tests.monitoring.boards import DASHBOARDS, DECLARED, MONITORING, names, panels, rules

UNWATCHED: dict[str, str] = {}
"""Metrics that no dashboard and no alert needs, each with the reason."""

TEMPLATES = re.compile(r"\$\{?(\w+)")

pytestmark = pytest.mark.long


def test_the_files_are_what_the_generator_writes() -> None:
    assert sorted(BOARDS) == [path.stem for path in DASHBOARDS]
    for path in DASHBOARDS:
        assert path.read_text("utf-8") == text(path.stem), (
            f"run deploy/monitoring/dashboards.py: {path}"
        )


def test_the_table_of_metrics_is_the_codes() -> None:
    assert PAGE.read_text("utf-8") == page(), "run docs/write_metrics.py"


@pytest.mark.parametrize("path", DASHBOARDS, ids=lambda path: path.stem)
def test_grafanas_own_model_reads_each_and_loses_nothing(path: Path) -> None:
    register_default_plugins()
    document = json.loads(path.read_text())
    again = json.loads(JSONEncoder(sort_keys=True).encode(Dashboard.from_json(document)))
    assert again == document


@pytest.mark.parametrize("path", DASHBOARDS, ids=lambda path: path.stem)
def test_no_data_source_is_written_in(path: Path) -> None:
    document = json.loads(path.read_text())
    found = [each for each in _dicts(document) if "datasource" in each]
    sources = [each["datasource"] for each in found]
    assert sources
    assert all(source == {"type": "prometheus", "uid": "${datasource}"} for source in sources)
    assert document["templating"]["list"][0]["type"] == "datasource"


@pytest.mark.parametrize("path", DASHBOARDS, ids=lambda path: path.stem)
def test_every_variable_is_one_of_the_dashboards_and_links_lead_to_the_pages(path: Path) -> None:
    document = json.loads(path.read_text())
    variables = {each["name"] for each in document["templating"]["list"]}
    assert set(TEMPLATES.findall(path.read_text())) <= {*variables, "__field"}
    (serve,) = (each for each in document["templating"]["list"] if each["name"] == "serve")
    assert serve["query"] == "http://localhost:8420"
    links = [each["url"] for each in _dicts(document) if each.get("type") == "link"]
    assert links
    assert all(link.startswith("${serve}/") for link in links)


def test_panels_have_room_and_say_what_they_show() -> None:
    for path in DASHBOARDS:
        taken: set[tuple[int, int]] = set()
        for panel in json.loads(path.read_text())["panels"]:
            place = panel["gridPos"]
            own = {
                (x, y)
                for x in range(place["x"], place["x"] + place["w"])
                for y in range(place["y"], place["y"] + place["h"])
            }
            assert not own & taken, panel["title"]
            assert max(x for x, _ in own) < 24, panel["title"]
            taken |= own
            assert panel["description"].endswith("."), panel["title"]


def test_every_metric_that_is_asked_for_is_declared() -> None:
    recorded = {rule.name for rule in rules() if not rule.is_alert}
    asked = {name for each in (*panels(), *rules()) for name in names(each.expression)}
    assert asked - recorded <= DECLARED.keys()
    assert recorded <= asked, "a recording rule that nobody reads"


def test_every_declared_metric_is_watched_or_is_not_for_a_reason() -> None:
    asked = {name for each in (*panels(), *rules()) for name in names(each.expression)}
    assert DECLARED.keys() - asked == UNWATCHED.keys()


def test_nothing_asks_for_the_increase_of_a_counter() -> None:
    for each in (*panels(), *rules()):
        assert not re.search(r"\b(increase|i?rate|irate)\s*\(", each.expression), each


def test_labels_that_are_asked_for_are_declared() -> None:
    known = {label for metric in DECLARED.values() for label in metric.labels}
    known |= {"le", "node", "role", "job", "instance", "series"}
    for each in (*panels(), *rules()):
        bare = re.sub(r'"[^"]*"', '""', each.expression)
        for listed in re.findall(r"\b(?:by|on|group_left)\s*\(([^)]*)\)", bare):
            assert {name.strip() for name in listed.split(",") if name.strip()} <= known, each
        for matchers in re.findall(r"\{([^}]*)\}", bare):
            assert set(re.findall(r"(\w+)\s*[!=]", matchers)) <= known, each


def test_every_alert_has_a_firing_and_a_silent_case_and_words() -> None:
    tests = yaml.safe_load((MONITORING / "prometheus" / "rules_test.yml").read_text())["tests"]
    cases = {each["name"].partition(",")[0] for each in tests}
    document = yaml.safe_load((MONITORING / "prometheus" / "alerts.yml").read_text())
    readme = (MONITORING / "README.md").read_text()
    for rule in (rule for group in document["groups"] for rule in group["rules"]):
        assert {f"{rule['alert']} fires", f"{rule['alert']} is silent"} <= cases
        assert rule["labels"]["severity"] in ("critical", "warning")
        assert rule["annotations"].keys() == {"summary", "description"}
        assert f"`{rule['alert']}`" in readme


def test_what_the_compose_file_starts_is_pinned_and_listens_on_the_loopback_only() -> None:
    document = yaml.safe_load((MONITORING / "compose.yml").read_text())
    for name, service in document["services"].items():
        image, _, tag = service["image"].rpartition(":")
        assert image, name
        assert tag != "latest", name
        assert "ports" not in service, name
        for volume in service.get("volumes", ()):
            source = volume.partition(":")[0]
            known = source in document["volumes"] or (MONITORING / source).is_dir()
            assert known, volume
    command = " ".join(document["services"]["prometheus"]["command"])
    assert "--web.listen-address=127.0.0.1:9090" in command
    assert document["services"]["grafana"]["environment"]["GF_SERVER_HTTP_ADDR"] == "127.0.0.1"
    assert "--address 127.0.0.1:9000" in document["services"]["s3"]["command"]


def test_grafana_is_given_the_dashboards_and_the_data_source() -> None:
    grafana = MONITORING / "grafana" / "provisioning"
    (provider,) = yaml.safe_load((grafana / "dashboards" / "apiary.yml").read_text())["providers"]
    (source,) = yaml.safe_load((grafana / "datasources" / "prometheus.yml").read_text())[
        "datasources"
    ]
    compose = yaml.safe_load((MONITORING / "compose.yml").read_text())["services"]["grafana"]
    mounts = {each.split(":")[1]: each.split(":")[0] for each in compose["volumes"]}
    assert mounts[provider["options"]["path"]] == "./grafana/dashboards"
    assert source["type"] == "prometheus"
    assert source["url"] == "${APIARY_PROMETHEUS}"
    assert compose["environment"]["APIARY_PROMETHEUS"].endswith(":9090")


def _dicts(value: Any) -> list[dict[str, Any]]:
    if isinstance(value, dict):
        return [value, *(found for each in value.values() for found in _dicts(each))]
    if isinstance(value, list):
        return [found for each in value for found in _dicts(each)]
    return []
