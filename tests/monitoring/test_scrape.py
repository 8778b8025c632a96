"""A mixed sweep, a real Prometheus, and every query that is shipped."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from tests.monitoring.boards import Panel, Rule, panels, rules
from tests.monitoring.scene import ELSEWHERE, PROFILES, Scene, scene
from tests.monitoring.table import asked, table

pytestmark = [pytest.mark.docker, pytest.mark.ray]

PANELS = list(panels())
RULES = list(rules())


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    with scene(tmp_path_factory.mktemp("mixed") / "home") as made:
        yield made


def test_the_sweep_had_failures_of_every_kind(mixed: Scene) -> None:
    assert mixed.killed
    # What a parked endpoint holds up is left open, if it had not spent its tries before.
    assert mixed.ran.events[-1]["state"] in ("settled", "infrastructure")
    blames = Counter((each["condition"], each["blame"]) for each in mixed.tries())
    for condition, blame in (
        ("able", "none"),
        ("sloppy", "model"),
        ("silent", "model"),
        ("limited", "provider"),
        ("cut", "provider"),
        ("able", "harness"),
    ):
        assert blames[condition, blame], (condition, blame)
    by_harness = {each["cause"] for each in mixed.tries() if each["blame"] == "harness"}
    # The image that cannot be built, and what the death of a container came to.
    assert "image_build" in by_harness
    assert len(by_harness) > 1


@pytest.mark.parametrize("panel", PANELS, ids=lambda panel: f"{panel.board}: {panel.title}")
def test_every_query_of_every_panel_has_an_answer(mixed: Scene, panel: Panel) -> None:
    found = mixed.latest(asked(panel, mixed))
    assert found, panel.expression
    assert all(math.isfinite(value) for value in found.values()), found


@pytest.mark.parametrize(
    "rule", [rule for rule in RULES if not rule.is_alert], ids=lambda r: r.name
)
def test_every_recording_rule_records(mixed: Scene, rule: Rule) -> None:
    recorded = mixed.latest(rule.name)
    assert recorded
    assert all(math.isfinite(value) for value in recorded.values()), recorded
    asked_now = mixed.latest(rule.expression)
    bare = [{k: v for k, v in labels if k != "__name__"} for labels in recorded]
    assert all({k: v for k, v in labels if k != "__name__"} in bare for labels in asked_now)


@pytest.mark.parametrize("rule", [rule for rule in RULES if rule.is_alert], ids=lambda r: r.name)
def test_every_alerts_expression_can_be_asked(mixed: Scene, rule: Rule) -> None:
    mixed.latest(rule.expression)


def test_no_rule_failed(mixed: Scene) -> None:
    for group in mixed.watcher.ask("/api/v1/rules")["groups"]:
        for rule in group["rules"]:
            assert rule["health"] == "ok", rule


def test_the_split_of_failures_is_the_stores(mixed: Scene) -> None:
    found = mixed.watcher.at(
        "sum by (condition, verdict, blame, cause, state) "
        f'(apiary_attempts{{sweep="{mixed.sweep}"}})',
        mixed.ended,
    )
    shown = Counter[tuple[str, str, str, str, bool]]()
    for labels, value in found.items():
        told = dict(labels)
        settled = told["state"] in ("committed", "dead")
        key = (told["condition"], told["verdict"], told["blame"], told["cause"], settled)
        shown[key] += int(value)
    assert shown == mixed.outcomes()
    assert {blame for _, _, blame, _, settled in shown if settled} == {
        "none",
        "model",
        "provider",
        "harness",
    }


def test_what_the_failure_panels_show_is_the_stores_too(mixed: Scene) -> None:
    by_blame = Counter[str]()
    for (_, _, blame, _, settled), count in mixed.outcomes().items():
        by_blame[blame] += count if settled else 0
    for title, blame in (
        ("The model's failures", "model"),
        ("The harness' failures", "harness"),
        ("Providers' failures", "provider"),
        ("Tasks' failures", "task"),
        ("Unclassified", "unclassified"),
    ):
        (panel,) = (each for each in PANELS if (each.board, each.title) == ("sweep", title))
        assert list(mixed.watcher.at(asked(panel, mixed), mixed.ended).values()) == [
            by_blame[blame]
        ]


def test_tries_commits_and_cost_are_the_stores(mixed: Scene) -> None:
    def shown(expression: str, *names: str) -> dict[tuple[str, ...], float]:
        found = mixed.watcher.at(expression, mixed.ended)
        every = {tuple(dict(labels)[n] for n in names): value for labels, value in found.items()}
        return {key: value for key, value in every.items() if value}

    tries, results = mixed.tries(), mixed.ran.results
    of = f'sweep="{mixed.sweep}"'
    assert shown(
        f"sum by (blame, cause) (apiary_tries_total{{{of}}})", "blame", "cause"
    ) == Counter((each["blame"], each["cause"]) for each in tries)
    assert shown(f"sum by (verdict) (apiary_trials_total{{{of}}})", "verdict") == Counter(
        (each["verdict"],) for each in results
    )
    cost = Counter[tuple[str, ...]]()
    for each in tries:
        cost[each["condition"],] += each["usage"]["cost_usd"]
    told = shown(f"sum by (condition) (apiary_sweep_cost_usd_total{{{of}}})", "condition")
    assert told == {key: pytest.approx(value) for key, value in cost.items() if value}


def test_what_was_parked_and_throttled_is_told(mixed: Scene) -> None:
    parked = mixed.latest(f'max_over_time(apiary_endpoint_parked{{sweep="{mixed.sweep}"}}[10m])')
    assert {dict(labels)["endpoint"] for labels, value in parked.items() if value} == {"limited"}
    throttled = mixed.latest("apiary:model_throttled:share")
    assert {dict(labels)["endpoint"] for labels, value in throttled.items() if value} == {"limited"}
    permits = {dict(labels)["endpoint"] for labels in mixed.latest("apiary_model_permits")}
    assert permits == set(ELSEWHERE)
    asked_of = {dict(labels)["endpoint"] for labels in mixed.latest("apiary_model_tokens_total")}
    assert asked_of == set(PROFILES)


def test_driver_and_node_are_found_once_by_both_ways_and_are_gone_afterwards(mixed: Scene) -> None:
    for role in ("driver", "node"):
        counted = mixed.latest(f'max_over_time(count(up{{role="{role}"}})[10m:1s])')
        assert list(counted.values()) == [1], role
        assert list(mixed.latest(f'max_over_time(min(up{{role="{role}"}})[10m:1s])').values()) == [
            1
        ]
    targets = mixed.ran.home / "prometheus" / "targets" / "sweep.json"
    assert json.loads(targets.read_text()) == []


def test_the_last_values_stay_beside_the_report(mixed: Scene) -> None:
    folder = mixed.ran.home / ".apiary" / "sweeps" / mixed.sweep / "report"
    text = (folder / "metrics.txt").read_text()
    assert text.endswith("# EOF\n")
    assert 'apiary_sweep_progress_ratio{sweep="' in text


def test_the_nodes_last_values_are_what_the_records_add_up_to(mixed: Scene) -> None:
    folder = mixed.ran.home / ".apiary" / "sweeps" / mixed.sweep / "report"
    (kept,) = folder.glob("metrics-*.txt")
    found = Counter[tuple[str, str]]()
    for family in text_string_to_metric_families(kept.read_text()):
        for sample in family.samples:
            found[sample.name, sample.labels.get("kind", "")] += sample.value
    usage = [each["usage"] for each in mixed.tries()]
    for kind, name in (("input", "input_tokens"), ("output", "output_tokens")):
        assert found["apiary_model_tokens_total", kind] == sum(each[name] for each in usage)
    assert found["apiary_model_requests_total", ""] == sum(each["calls"] for each in usage)
    assert found["apiary_model_cost_usd_total", ""] == pytest.approx(
        sum(each["cost_usd"] for each in usage)
    )
    assert found["apiary_containers", ""] == 0
    assert found["apiary_trials_running", ""] == 0


def test_the_table_of_panels_can_be_shown(mixed: Scene, capsys: pytest.CaptureFixture[str]) -> None:
    lines = table(mixed)
    assert len(lines) >= len(PANELS)
    with capsys.disabled():
        print("\n" + "\n".join(lines))  # noqa: T201 - what the run is for
