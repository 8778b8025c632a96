from __future__ import annotations

from pathlib import Path

import pytest

from scheduler.lock import lock_of
from scheduler.lock_format import Lock, LockedEndpoint
from scheduler.lock_plan import plan_from_lock
from scheduler.manifest import ManifestError
from scheduler.plan import Plan
from tests.scheduler.manifest.builders import plan_of, write, write_world
from workers.contract.endpoint import Endpoint


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    return plan_of(write_world(tmp_path))


def test_no_key_and_no_value_of_env_is_locked(tmp_path: Path) -> None:
    sweep = write_world(tmp_path)
    text = "scripted-one: {provider: openai, api_key_env: K, base_url: 'http://h/v1', "
    text += "model: m, env: {RUST_LOG: hush}}\n"
    write(tmp_path / "e.yaml", text + "scripted-two: {provider: scripted}\n")
    sweep.write_text(
        sweep.read_text().replace("../../deploy/endpoints/scripted.json", "../../e.yaml")
    )
    plan = plan_of(sweep, {"K": "sk-secret"})
    lock = lock_of(plan)
    assert "sk-secret" not in lock.to_json()
    assert "hush" not in lock.to_json()
    assert lock.endpoints["scripted-one"].env_names == ("RUST_LOG",)
    again = plan_from_lock(lock, environment={"K": "sk-secret"})
    one = again.spec.endpoints["scripted-one"]
    assert (one.provider, one.api_key_env, one.base_url, one.model) == (
        "openai",
        "K",
        "http://h/v1",
        "m",
    )
    assert again.warnings == (
        "endpoint scripted-one: RUST_LOG are not set: give the endpoint file again",
    )
    with pytest.raises(ManifestError, match=r"endpoints\.scripted-one: .* K must hold its key"):
        plan_from_lock(lock, environment={"K": ""})


def test_another_endpoint_file_may_be_given_on_resume(plan: Plan) -> None:
    lock = lock_of(plan)
    given = {
        "scripted-one": Endpoint(provider="openai", api_key_env="K"),
        "scripted-two": Endpoint(provider="scripted"),
        "spare": Endpoint(provider="openai", api_key_env="OTHER"),
    }
    again = plan_from_lock(lock, environment={"K": "k"}, endpoints=given)
    assert set(again.spec.endpoints) == {"scripted-one", "scripted-two"}
    assert again.spec.endpoints["scripted-one"].provider == "openai"
    with pytest.raises(ManifestError, match="no endpoint of this name"):
        plan_from_lock(lock, environment={}, endpoints={})


def test_all_of_an_endpoint_but_the_values_of_env_is_resumed(tmp_path: Path) -> None:
    sweep = write_world(tmp_path)
    write(
        tmp_path / "e.yaml",
        "scripted-one:\n  {provider: openai, api_key_env: K, base_url: 'http://h/v1', model: m,\n"
        "   key_header: api-key, path: p/x, query: {api-version: '1'}, extra_headers: {X-A: b},\n"
        "   extra_headers_env: {X-B: C}, proxy: none, ca_bundle: /ca.pem, stream_usage: true,\n"
        "   max_concurrency: 7, requests_per_minute: 90.5, tokens_per_minute: 1000.0}\n"
        "scripted-two: {provider: scripted}\n",
    )
    sweep.write_text(
        sweep.read_text().replace("../../deploy/endpoints/scripted.json", "../../e.yaml")
    )
    plan = plan_of(sweep, {"K": "k", "C": "c"})
    lock = Lock.from_json(lock_of(plan).to_json(), "lock")
    assert plan_from_lock(lock).spec.endpoints == plan.spec.endpoints
    said = plan.spec.endpoints["scripted-one"]
    assert said.model_fields_set == Endpoint.model_fields.keys() - {"env"}
    kept = LockedEndpoint.model_fields.keys() - {"dialect", "env_names"}
    assert kept == Endpoint.model_fields.keys() - {"env"}


def test_an_endpoint_that_is_called_like_a_canary_is_given_anew_all_the_same(
    tmp_path: Path,
) -> None:
    sweep = write_world(tmp_path)
    write(tmp_path / "e.yaml", "canary-blue: {provider: scripted}\n")
    for name in ("one", "two"):
        path = sweep.parents[1] / "conditions" / f"{name}.yaml"
        path.write_text(path.read_text().replace(f"scripted-{name}", "canary-blue"))
    sweep.write_text(
        sweep.read_text().replace("../../deploy/endpoints/scripted.json", "../../e.yaml")
    )
    lock = lock_of(plan_of(sweep))
    given = {"canary-blue": Endpoint(provider="scripted", base_url="http://other")}
    assert plan_from_lock(lock, endpoints=given).spec.endpoints == given
