from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from scheduler.lock import (
    Lock,
    LockError,
    lock_key,
    lock_of,
    read_lock,
    read_locks,
    revised,
    write_lock,
    write_next,
)
from scheduler.lock_difference import difference
from scheduler.lock_plan import key_faults, plan_from_lock
from scheduler.manifest import ManifestError, SweepBudget
from scheduler.plan import Plan
from tests.scheduler.manifest.builders import PROMPT, plan_of, write, write_world
from workers.contract.base import FormatError, sha256_hex
from workers.contract.task_folder import archive_key, digest_of, unpack
from workers.storage import Store, open_store


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return open_store(f"file://{tmp_path}/store")


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    return plan_of(write_world(tmp_path))


def changed(lock: Lock, **values: Any) -> str:
    return json.dumps({**json.loads(lock.to_json()), **values})


def test_a_lock_freezes_what_was_planned(plan: Plan) -> None:
    lock = lock_of(plan)
    assert (lock.number, lock.sweep, lock.started_at) == (1, plan.sweep, plan.started_at)
    assert [task.name for task in lock.tasks] == ["buzz-native/alpha", "buzz-native/beta"]
    assert [each.manifest.condition for each in lock.conditions] == ["one", "two"]
    assert lock.prompts == {sha256_hex(PROMPT.encode()): PROMPT}
    assert lock.attempts == dict(plan.counts)
    assert (lock.scoring.rule, lock.scoring.coverage_gate) == ("strict", 0.9)
    assert lock.user_attested is True
    assert lock.endpoints["scripted-one"].dialect == "chat"
    assert None not in (lock.versions.ray, lock.versions.docker, lock.versions.nostr_sdk)
    assert Lock.from_json(lock.to_json(), "lock") == lock


def test_a_lock_is_written_after_the_archives_and_read_back(
    plan: Plan, store: Store, tmp_path: Path
) -> None:
    lock = write_lock(store, plan)
    assert sorted(store.keys("tasks/")) == sorted(archive_key(task.digest) for task in plan.tasks)
    assert read_locks(store, plan.sweep) == [lock]
    for task in plan.tasks:
        target = tmp_path / "out" / task.digest
        unpack(store.get(archive_key(task.digest)), target)
        assert digest_of(target / "task", target / "kit") == task.digest


def test_the_plan_comes_back_from_the_lock_alone(plan: Plan, store: Store) -> None:
    write_lock(store, plan)
    (lock,) = read_locks(store, plan.sweep)
    again = plan_from_lock(lock, environment={})
    for field in ("name", "started_at", "spec", "cells", "counts", "attempts", "scoring", "budget"):
        assert getattr(again, field) == getattr(plan, field), field
    assert again.archives == {}
    assert lock_of(again) == lock


def test_the_same_plan_started_twice_in_one_second_is_run_once(plan: Plan, store: Store) -> None:
    lock = write_lock(store, plan)
    with pytest.raises(LockError, match="same second"):
        write_lock(store, plan)
    assert read_locks(store, plan.sweep) == [lock]
    assert list(store.keys("sweeps/")) == [lock_key(plan.sweep, 1)]


def test_another_sweep_of_the_same_second_is_refused(
    plan: Plan, store: Store, tmp_path: Path
) -> None:
    write_lock(store, plan)
    sweep = tmp_path / "manifests/sweeps/small.yaml"
    sweep.write_text(sweep.read_text() + "seed: 7\n")
    with pytest.raises(LockError, match="same second"):
        write_lock(store, plan_of(sweep))


def test_a_folder_changed_since_it_was_planned_is_refused(
    plan: Plan, store: Store, tmp_path: Path
) -> None:
    write(tmp_path / "manifests/tasks/beta/instruction.md", "Other.\n")
    with pytest.raises(LockError, match="beta: changed since it was planned"):
        write_lock(store, plan)
    (tmp_path / "manifests/tasks/alpha/tests/link").symlink_to("test.sh")
    store.delete(archive_key(plan.tasks[0].digest))
    with pytest.raises(LockError, match="a link"):
        write_lock(store, plan)
    assert list(store.keys("sweeps/")) == []


def test_locks_are_read_in_the_order_of_their_numbers(plan: Plan, store: Store) -> None:
    lock = write_lock(store, plan)
    for number in (10, 2):
        store.put(lock_key(plan.sweep, number), changed(lock, number=number).encode())
    store.put(f"sweeps/{plan.sweep}/lock-x.json", b"{}")
    assert [each.number for each in read_locks(store, plan.sweep)] == [1, 2, 10]


def test_a_sweep_without_a_lock(store: Store) -> None:
    with pytest.raises(LockError, match="no lock of a sweep 'none'"):
        read_locks(store, "none")


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"schema_version": 2}, "schema_version"),
        ({"surprise": 1}, "surprise"),
        ({"number": 2}, "this is lock 2"),
        ({"sweep": "other"}, "of sweep 'other'"),
        ({"prompts": {"0" * 64: "x"}}, "is not its text's digest"),
        ({"attempts": {}}, "the cells are not those"),
        ({"tasks": []}, "the cells are not those"),
    ],
)
def test_a_lock_that_does_not_hold_is_refused(
    plan: Plan, store: Store, values: dict[str, Any], words: str
) -> None:
    lock = lock_of(plan)
    store.put(lock_key(plan.sweep, 1), changed(lock, **values).encode())
    with pytest.raises(FormatError, match=words):
        read_lock(store, plan.sweep, 1)


def test_a_lock_that_lacks_a_prompt_runs_nothing(plan: Plan, store: Store) -> None:
    store.put(lock_key(plan.sweep, 1), changed(lock_of(plan), prompts={}).encode())
    lock = read_lock(store, plan.sweep, 1)
    with pytest.raises(ManifestError, match=rf"prompts\.{sha256_hex(PROMPT.encode())}"):
        plan_from_lock(lock)


def test_a_prompt_changed_in_a_lock_is_refused(plan: Plan, store: Store) -> None:
    lied = changed(lock_of(plan), prompts={sha256_hex(PROMPT.encode()): "Lie."})
    store.put(lock_key(plan.sweep, 1), lied.encode())
    with pytest.raises(FormatError, match="is not its text's digest"):
        read_lock(store, plan.sweep, 1)


def test_a_condition_changed_in_a_lock_is_refused(plan: Plan, store: Store) -> None:
    text = lock_of(plan).to_json().replace('"timeout_seconds": 300', '"timeout_seconds": 301')
    store.put(lock_key(plan.sweep, 1), text.encode())
    with pytest.raises(FormatError, match="is not its manifest's digest"):
        read_lock(store, plan.sweep, 1)


def test_how_an_endpoint_is_reached_stands_in_the_lock(tmp_path: Path) -> None:
    sweep = write_world(tmp_path)
    text = """\
scripted-one:
  provider: openai
  api_key_env: K
  key_header: api-key
  base_url: https://h/openai/deployments/d
  path: chat/completions
  query: {api-version: "2024-10-21"}
  extra_headers: {X-Team: red}
  extra_headers_env: {X-Team-Key: TEAM}
  proxy: http://proxy:3128
  ca_bundle: /etc/ca.pem
  stream_usage: true
scripted-two: {provider: scripted}
"""
    write(tmp_path / "e.yaml", text)
    sweep.write_text(
        sweep.read_text().replace("../../deploy/endpoints/scripted.json", "../../e.yaml")
    )
    plan = plan_of(sweep, {"K": "sk-secret", "TEAM": "t-secret"})
    lock = lock_of(plan)
    assert "-secret" not in lock.to_json()
    assert plan_from_lock(lock).spec == plan.spec
    found = key_faults("lock", plan.spec.endpoints, {"K": "k"})
    assert [str(fault) for fault in found] == [
        "lock: endpoints.scripted-one: the environment variable TEAM must hold its header; "
        "it is not set"
    ]


def test_a_raised_budget_is_the_next_lock_and_nothing_else(tmp_path: Path) -> None:
    plan = plan_of(write_world(tmp_path))
    store = open_store(f"file://{tmp_path}/store")
    lock = write_lock(store, plan)
    wished = revised(lock, budget=SweepBudget(max_calls=9))
    raised = write_next(store, wished, datetime(2026, 5, 1, tzinfo=UTC))
    assert read_locks(store, plan.sweep) == [lock, raised]
    assert (raised.number, raised.grown_at) == (2, "2026-05-01T00:00:00Z")
    before = lock.model_dump(exclude={"number", "grown_at", "budget"})
    assert raised.model_dump(exclude={"number", "grown_at", "budget"}) == before
    assert plan_from_lock(raised).budget == SweepBudget(max_calls=9)
    with pytest.raises(LockError, match="somebody else"):
        write_next(store, wished, datetime(2026, 5, 1, tzinfo=UTC))


def test_endpoints_that_stay_revise_nothing_and_others_are_told(plan: Plan, store: Store) -> None:
    lock = write_lock(store, plan)
    same = plan_from_lock(lock).spec.endpoints
    assert revised(lock, budget=lock.budget, endpoints=same) == lock
    moved = same["scripted-one"].model_copy(update={"base_url": "http://h/v1", "model": "m2"})
    wished = revised(lock, budget=lock.budget, endpoints={**same, "scripted-one": moved})
    after = write_next(store, wished, datetime(2026, 5, 1, tzinfo=UTC))
    told = difference([lock], after)
    assert told.settings == (
        "endpoints.scripted-one.base_url: none -> http://h/v1",
        "endpoints.scripted-one.model: none -> m2",
    )
    assert (told.added, told.superseded) == (0, ())
    assert plan_from_lock(after).spec.endpoints["scripted-one"] == moved
