# ruff: noqa: E501 - tables of refusals, one a line
from __future__ import annotations

from pathlib import Path

import pytest

from scheduler.manifest.faults import ManifestError
from scheduler.manifest.sweep import Overrides, load_sweep, sweep_from_flags
from tests.scheduler.manifest.builders import SWEEP, write, write_condition, write_world
from workers.contract.relay import Deployment

MINIMAL = "name: s\nconditions: [c.yaml]\n"


def test_defaults(tmp_path: Path) -> None:
    loaded = load_sweep(write(tmp_path / "m" / "s.yaml", MINIMAL), manifests=tmp_path / "data")
    file = loaded.file
    assert (file.layer, file.attempts, file.endpoints, file.store) == (None, None, None, None)
    assert (file.agent, file.relay, file.network, file.seed) == (
        "reference",
        "embedded",
        "declared",
        0,
    )
    assert (file.scoring.rule, file.scoring.coverage_gate) == ("strict", 0.9)
    assert file.limits.max_tries == 3
    assert loaded.tasks_path == tmp_path / "data" / "tasks"
    assert loaded.condition_paths == (tmp_path / "m" / "c.yaml",)
    assert loaded.endpoints_path == tmp_path / "deploy" / "endpoints" / "anthropic-live.json"


def test_relative_paths_start_at_the_file(tmp_path: Path) -> None:
    text = "name: s\nconditions: [../c/a.yaml, /abs/b.yaml]\nendpoints: e.json\ntasks: {path: t}\n"
    loaded = load_sweep(write(tmp_path / "m" / "s.yaml", text))
    assert loaded.condition_paths == (tmp_path / "c" / "a.yaml", Path("/abs/b.yaml"))
    assert loaded.endpoints_path == tmp_path / "m" / "e.json"
    assert loaded.tasks_path == tmp_path / "m" / "t"


def test_a_link_in_a_path_is_followed_before_its_dots(tmp_path: Path) -> None:
    (tmp_path / "there" / "inside").mkdir(parents=True)
    write(tmp_path / "m" / "s.yaml", "name: s\nconditions: [link/../a.yaml]\nendpoints: e.json\n")
    (tmp_path / "m" / "link").symlink_to(tmp_path / "there" / "inside")
    loaded = load_sweep(tmp_path / "m" / "s.yaml")
    assert loaded.condition_paths == (tmp_path / "m" / "link/../a.yaml",)


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("name: small", "nmae: small", "1: nmae: unknown field: no such field here (did you mean 'name'?)"),
        ("name: small", "name: Small", "1: name: expected text of the form ^[a-z0-9]"),
        ("name: small", "name: a/b", "1: name: expected text of the form"),
        ("attempts: 2", "attempts: 0", "2: attempts: expected a number of at least 1, found 0"),
        ("attempts: 2", "attempts: two", "2: attempts: expected a whole number, found 'two'"),
        ("attempts: 2", "attemps: 2", "2: attemps: unknown field: no such field here (did you mean 'attempts'?)"),
        ("attempts: 2", "layer: regresion", "2: layer: expected 'regression' or 'workflow', found 'regresion' (did you mean 'regression'?)"),
        ("attempts: 2", "agent: referense", "2: agent: expected 'reference', 'buzz', 'oracle' or 'nop', found 'referense' (did you mean 'reference'?)"),
        ("attempts: 2", "timeout_multipliers: {agent: 0}", "2: timeout_multipliers.agent: expected a number greater than 0, found 0"),
        ("attempts: 2", "timeout_multiplier: 2", "2: timeout_multiplier: unknown field"),
        ("attempts: 2", "scoring: {pass_threshold: 0}", "2: scoring.pass_threshold: expected a number greater than 0, found 0"),
        ("attempts: 2", "relay: external", "2: relay: expected 'embedded', found 'external'"),
        ("attempts: 2", "relay: {url: ws://h}", "2: relay.owner_key_env: this field is required and is not there"),
        ("attempts: 2", "relay: {url: ws://h, owner_key: X}", "2: relay.owner_key: unknown field: no such field here (did you mean 'owner_key_env'?)"),
        ("attempts: 2", "relay: {url: http://h, owner_key_env: X}", "2: relay.url: url must be ws://host[:port] or wss://host[:port], as RELAY_URL is"),
        ("attempts: 2", "relay: {url: ws://h, owner_key_env: X, gateway: g}", "2: relay.gateway: gateway must be host:port"),
        ("network: sealed", "network: seeled", "7: network: expected 'declared' or 'sealed', found 'seeled' (did you mean 'sealed'?)"),
        ("attempts: 2", "tasks: {includes: [a]}", "2: tasks.includes: unknown field: no such field here (did you mean 'include'?)"),
        ("attempts: 2", "tasks: {include: alpha}", "2: tasks.include: expected a list, found 'alpha'"),
        ("attempts: 2", "tasks: alpha", "2: tasks: expected a mapping, found 'alpha'"),
        ("attempts: 2", "scoring:\n  rule: strickt", "3: scoring.rule: expected 'strict' or 'valid_only', found 'strickt' (did you mean 'strict'?)"),
        ("attempts: 2", "scoring: {coverage_gate: 1.5}", "2: scoring.coverage_gate: expected a number of at most 1, found 1.5"),
        ("attempts: 2", "coverage_gate: 0.5", "2: coverage_gate: unknown field: no such field here (did you mean 'scoring.coverage_gate'?)"),
        ("attempts: 2", "limits: {max_trys: 2}", "2: limits.max_trys: unknown field: no such field here (did you mean 'max_tries'?)"),
        ("attempts: 2", "limits: {lease_term_s: 0}", "2: limits.lease_term_s: expected a number greater than 0, found 0"),
        ("attempts: 2", "budget: {max_cost: 2}", "2: budget.max_cost: unknown field: no such field here (did you mean 'max_cost_usd'?)"),
        ("attempts: 2", "seed: -1", "2: seed: expected a number of at least 0, found -1"),
        ("attempts: 2", "schema_version: 2", "2: schema_version: expected 1, found 2"),
        ("  - ../conditions/two.yaml", "  - 3", "5: conditions[1].path: expected text, found 3"),
        ("conditions:\n  - ../conditions/one.yaml\n  - ../conditions/two.yaml\n", "conditions: []\n", "3: conditions: expected at least 1, found an empty list"),
        ("conditions:\n  - ../conditions/one.yaml\n  - ../conditions/two.yaml\n", "", "1: conditions: this field is required and is not there"),
    ],
)  # fmt: skip
def test_refuses(tmp_path: Path, old: str, new: str, told: str) -> None:
    assert old in SWEEP
    path = write(tmp_path / "s.yaml", SWEEP.replace(old, new))
    with pytest.raises(ManifestError) as caught:
        load_sweep(path)
    assert any(str(fault).startswith(f"{path}:{told}") for fault in caught.value.faults), str(
        caught.value
    )


def test_flags_name_a_deployment_whatever_the_file_says(tmp_path: Path) -> None:
    named = "relay: {url: ws://a, owner_key_env: A, archive_on_teardown: false}\n"
    for text in (MINIMAL, MINIMAL + "relay: embedded\n", MINIMAL + named):
        said = Overrides(relay_url="wss://b", relay_owner_key_env="B", relay_gateway="c:1")
        relay = load_sweep(write(tmp_path / "s.yaml", text), said).file.relay
        assert relay == Deployment(
            url="wss://b", owner_key_env="B", gateway="c:1", archive_on_teardown=named not in text
        )
    with pytest.raises(ManifestError, match=r"relay\.owner_key_env: this field is required"):
        load_sweep(write(tmp_path / "s.yaml", MINIMAL), Overrides(relay_url="ws://b"))


def test_a_condition_in_its_place_is_one_fault(tmp_path: Path) -> None:
    path = write_condition(tmp_path, "one")
    with pytest.raises(ManifestError) as caught:
        load_sweep(path, Overrides(attempts=2))
    assert str(caught.value) == (
        f"{path}:1: this is a condition: give it with --manifest, and --path"
    )


@pytest.mark.parametrize("text", ["", "[]", "x"])
def test_refuses_what_is_no_mapping(tmp_path: Path, text: str) -> None:
    path = write(tmp_path / "s.yaml", text)
    with pytest.raises(ManifestError, match="expected a mapping"):
        load_sweep(path, Overrides(attempts=3))


def test_flags_lie_over_the_file(tmp_path: Path) -> None:
    path = write_world(tmp_path)
    given = Overrides(
        name="mine", layer="workflow", attempts=7, include=("b*",), exclude=("x",),
        endpoint_config="e.json", network="declared", store="file:///s", seed=5,
    )  # fmt: skip
    loaded = load_sweep(path, given)
    file = loaded.file
    assert (file.name, file.layer, file.attempts, file.seed) == ("mine", "workflow", 7, 5)
    assert (file.tasks.include, file.tasks.exclude) == (("b*",), ("x",))
    assert (file.network, file.store) == ("declared", "file:///s")
    assert loaded.endpoints_path == Path("e.json")
    assert load_sweep(path, Overrides()).file == load_sweep(path).file


def test_a_wrong_flag_is_named(tmp_path: Path) -> None:
    with pytest.raises(ManifestError) as caught:
        load_sweep(write_world(tmp_path), Overrides(attempts=0, layer="all"))
    assert {str(fault) for fault in caught.value.faults} == {
        "command line: --attempts: expected a number of at least 1, found 0",
        "command line: --layer: expected 'regression' or 'workflow', found 'all'",
    }


def test_flags_alone_give_what_a_file_would(tmp_path: Path) -> None:
    path = write_world(tmp_path)
    manifests = path.parents[1]
    conditions = tuple(manifests / "conditions" / f"{name}.yaml" for name in ("one", "two"))
    endpoints = str(tmp_path / "deploy/endpoints/scripted.json")
    flags = sweep_from_flags(
        manifests / "tasks",
        conditions,
        Overrides(name="small", attempts=2, network="sealed", endpoint_config=endpoints),
    )
    text = (
        f"name: small\nattempts: 2\nnetwork: sealed\nendpoints: {endpoints}\n"
        f"tasks: {{path: {manifests}/tasks}}\nconditions: [{conditions[0]}, {conditions[1]}]\n"
    )
    file = load_sweep(write(tmp_path / "same.yaml", text), manifests=manifests)
    assert flags.file == file.file
    assert flags.manifests == manifests.resolve()
    assert (flags.tasks_path, flags.condition_paths, flags.endpoints_path) == (
        file.tasks_path, file.condition_paths, file.endpoints_path,
    )  # fmt: skip


def test_flags_without_a_name_take_the_conditions_or_the_folders(tmp_path: Path) -> None:
    manifests = write_world(tmp_path).parents[1]
    one, two = (manifests / "conditions" / f"{name}.yaml" for name in ("one", "two"))
    assert sweep_from_flags(manifests / "tasks", (one,)).file.name == "one"
    assert sweep_from_flags(manifests / "tasks", (one, two)).file.name == "tasks"
    odd = Path("Ünder Öl/..Cond 1.yaml")
    assert sweep_from_flags(manifests / "tasks", (odd,)).file.name == "cond-1"


def test_flags_need_a_manifest(tmp_path: Path) -> None:
    with pytest.raises(ManifestError, match="command line: --manifest: expected at least 1"):
        sweep_from_flags(tmp_path, ())
