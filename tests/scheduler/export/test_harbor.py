"""Exported jobs against the JSON Schemas of Harbor's own models."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from scheduler.export.harbor import Exported, ExportError, export_harbor, place_of
from scheduler.export.harbor_format import EXCEPTIONS, Names, exception_name, job_of
from scheduler.lock import lock_key
from scheduler.lock_format import Lock
from scheduler.report.collect import collect
from tests.scheduler.export.judge import MODELS, SCHEMAS
from tests.scheduler.report.generated import fill, make_lock, write
from workers.contract.agent_logs import ARCHIVE, pack
from workers.contract.outcome import Cause
from workers.contract.result import TryRecord, result_key, try_prefix
from workers.storage import Store, open_store

TASKS = Path(__file__).parents[2] / "harbor_tasks"


def schema(name: str) -> Draft202012Validator:
    return Draft202012Validator(json.loads((SCHEMAS / f"{name}.json").read_text()))


def judged(name: str, path: Path) -> dict[str, Any]:
    """A document of a job, which its model accepts."""
    document: dict[str, Any] = json.loads(path.read_text())
    assert [error.message for error in schema(name).iter_errors(document)] == []
    return document


def one_attempt(store: Store) -> Lock:
    """A sweep of one attempt, with its lock in the store."""
    lock = make_lock(conditions=1, regression=0, workflow=1, attempts=1)
    store.put(lock_key(lock.sweep, lock.number), lock.to_json().encode())
    return lock


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return open_store(f"file://{tmp_path}/store")


def test_every_document_is_of_harbors_format_and_the_figures_agree(
    tmp_path: Path, store: Store
) -> None:
    lock = make_lock(regression=1, workflow=2, canaries=True)
    fill(store, lock, invalid=0.3)
    job = tmp_path / "jobs" / "made"
    done = export_harbor(store, lock.sweep, job)
    judged("job-config", job / "config.json")
    result = judged("job-result", job / "result.json")
    trials = {}
    for folder in (path for path in job.iterdir() if path.is_dir()):
        config = judged("trial-config", folder / "config.json")
        trials[folder.name] = judged("trial-result", folder / "result.json")
        assert config["trial_name"] == folder.name == trials[folder.name]["trial_name"]
    assert len(trials) == done.trials == result["stats"]["n_completed_trials"] == 18
    # Not one of a canary, and no reward where nothing is said of a model.
    invalid = {n for n, each in trials.items() if each["verifier_result"] is None}
    assert not any("canary" in each["agent_info"]["model_info"]["name"] for each in trials.values())
    assert 0 < len(invalid) < 18
    for name, each in trials.items():
        told = each["agent_result"]["metadata"]["apiary"]["verdict"]
        assert (told == "invalid") is (name in invalid)
        assert not (name in invalid and each["exception_info"] is None)
    evals = result["stats"]["evals"]
    assert set(evals) == {f"apiary-reference__condition-{n}__buzz-native" for n in (0, 1)}
    assert sum(each["n_trials"] for each in evals.values()) == 18 - len(invalid)
    for each in evals.values():
        named = [n for names in each["reward_stats"]["reward"].values() for n in names]
        assert len(named) == each["n_trials"] and not invalid & set(named)


def test_two_exports_of_a_sweep_are_one(tmp_path: Path, store: Store) -> None:
    lock = make_lock(regression=1, workflow=1, attempts=1)
    fill(store, lock)
    for name in ("a", "b"):
        export_harbor(store, lock.sweep, tmp_path / name / "job")
    texts = [
        {path.relative_to(root): path.read_bytes() for path in root.rglob("*") if path.is_file()}
        for root in (tmp_path / "a", tmp_path / "b")
    ]
    assert texts[0] == texts[1]


def test_phases_follow_one_another_whatever_order_a_record_has_them_in(store: Store) -> None:
    lock = one_attempt(store)
    write(store, lock, lock.tasks[0], lock.conditions[0], 0, 1, Cause.NONE)
    (cell,) = lock.cells
    key = result_key(lock.sweep, next(cell.ids(lock.sweep)))
    record = TryRecord.from_json(store.get(key), key)
    seconds = {"collect": 1.0, "drive": 10.0, "launch": 2.0, "prepare": 3.0, "verify": 4.0}
    store.put(key, record.model_copy(update={"phase_seconds": seconds}).to_json().encode())
    (trial,) = job_of(lock, collect(store, lock.sweep), "job").trials
    spans = {name: trial.result[name] for name in ("environment_setup", "agent_setup",
             "agent_execution", "verifier")}  # fmt: skip
    assert [each["started_at"][17:19] for each in spans.values()] == ["00", "03", "05", "16"]
    assert spans["verifier"]["finished_at"][17:19] == "20"


def test_files_go_where_harbor_looks_and_lost_ones_are_counted(
    tmp_path: Path, store: Store
) -> None:
    lock = one_attempt(store)
    write(store, lock, lock.tasks[0], lock.conditions[0], 0, 1, Cause.VERIFIER_CRASH)
    key = f"{try_prefix(lock.sweep, next(lock.cells[0].ids(lock.sweep)), '1-1')}"
    record = TryRecord.from_json(store.get(f"{key}/try.json"), key)
    team = {"lead-1.stdout.log": b"lead", "worker-1.stderr.log": b"\xffworker"}
    names = {
        "logs/agents/solo-1.stderr.log": "agent/buzz/solo-1.stderr.log",
        "buzz/buzz-evidence-error.txt": "agent/buzz/buzz-evidence-error.txt",
        "evidence.json": "agent/buzz/evidence.json",
        "inputs/etc/a.txt": "agent/buzz/inputs/etc/a.txt",
        "logs/agents/oracle.log": "agent/oracle.txt",
        "logs/verifier/output.log": "verifier/test-stdout.txt",
        "reward.txt": "verifier/reward.txt",
        "gone.txt": "agent/buzz/gone.txt",
    }
    for name in names:
        if name != "gone.txt":
            store.put(f"{key}/{name}", b"\xff\0" + name.encode())
    store.put(f"{key}/{ARCHIVE}", pack(team))
    files = dict.fromkeys([*names, ARCHIVE], "0" * 64)
    store.put(f"{key}/try.json", record.model_copy(update={"files": files}).to_json().encode())
    done = export_harbor(store, lock.sweep, tmp_path / "job")
    assert done == Exported(trials=1, files=9, missing=1)
    (folder,) = (path for path in (tmp_path / "job").iterdir() if path.is_dir())
    for log, said in team.items():
        assert (folder / "agent/buzz" / log).read_bytes() == said
    assert not (folder / place_of(ARCHIVE)).exists()
    for name, place in names.items():
        assert place_of(name) == place
        if name != "gone.txt":
            assert (folder / place).read_bytes() == b"\xff\0" + name.encode()
    assert "verifier_crash" in (folder / "exception.txt").read_text()


@pytest.mark.parametrize("name", ["../a", "/a", "logs/../../a", "a//b", "./a", "a/"])
def test_a_name_that_leads_out_is_refused(name: str) -> None:
    with pytest.raises(ExportError, match="which is no plain name"):
        place_of(name)


def test_a_folder_with_files_and_one_that_is_none_are_refused(tmp_path: Path, store: Store) -> None:
    lock = make_lock(regression=1, workflow=1, attempts=1)
    fill(store, lock)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txt").write_text("precious")
    with pytest.raises(ExportError, match="a folder of its own, and this has files"):
        export_harbor(store, lock.sweep, tmp_path / "full")
    with pytest.raises(ExportError, match=r"File exists|Not a directory"):
        export_harbor(store, lock.sweep, tmp_path / "full" / "mine.txt")
    assert [path.name for path in (tmp_path / "full").iterdir()] == ["mine.txt"]


def test_names_of_trials_are_never_used_twice() -> None:
    names = Names()
    made = [names.make("a-task-with-a-name-of-many-signs_yes", f"0000000{n}f") for n in range(3)]
    assert made == [
        "a-task-with-a-name-of-many-signs__0000000",
        "a-task-with-a-name-of-many-signs__00000001",
        "a-task-with-a-name-of-many-signs__00000002",
    ]


def test_every_cause_has_one_name() -> None:
    names = [exception_name(cause) for cause in Cause if cause not in (Cause.NONE,)]
    doubled = {name for name in names if names.count(name) > 1}
    assert doubled == {"CancelledError"}
    assert exception_name(Cause.NODE_LOST) == "NodeLostError"
    assert set(EXCEPTIONS.values()) >= {"VerifierTimeoutError", "RewardFileNotFoundError"}


@pytest.mark.parametrize("path", sorted(TASKS.glob("*/task.toml")), ids=lambda p: p.parent.name)
def test_the_tests_own_tasks_are_harbors(path: Path) -> None:
    document = tomllib.loads(path.read_text())
    # What older ones say is moved before Harbor's model is asked.
    document["schema_version"] = document.pop("version", document.get("schema_version"))
    assert [error.message for error in schema("task").iter_errors(document)] == []


def test_the_schemas_are_those_of_the_judge() -> None:
    assert {path.stem for path in SCHEMAS.glob("*.json")} == set(MODELS)
