"""The skeleton's own verifier, in its image, on the transcripts of its proof as stored tries."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import pytest

from scheduler.cli import run_cli
from scheduler.cli.exits import Exit
from scheduler.dataset.proof import load_proof
from scheduler.dataset.transcript import evidence_of
from scheduler.plan import BaseImage
from tests.base_image import base_image
from tests.scheduler.dataset.builders import KIT, edit, make_task, read_task
from tests.scheduler.report.generated import condition_of, make_lock, write
from workers.contract.outcome import Cause
from workers.contract.spec import attempt_id, cell_id
from workers.storage import Store, open_store


@dataclass
class Regradable:
    """A store with one sweep, and the data set that it came from."""

    store: Store
    dataset: Path
    folder: Path
    sweep: str
    tries: int


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Regradable:
    """Every transcript of the proof as a try that was judged rightly."""
    (tmp_path / "verifier_kit").symlink_to(KIT)
    folder = make_task(tmp_path)
    task, proof = read_task(folder), load_proof(folder)
    under = condition_of("solver")
    words = (*proof.accepted, *proof.refused)
    lock = make_lock(
        conditions=1,
        regression=1,
        workflow=0,
        base_image=BaseImage(reference=base_image(), digest=None),
    ).model_copy(
        update={
            "tasks": (task,),
            "conditions": (under,),
            "attempts": {cell_id(under.digest, task.digest): len(words) + 1},
        }
    )
    store = open_store(f"file://{tmp_path / 'store'}")
    store.put(f"sweeps/{lock.sweep}/lock-1.json", lock.to_json().encode())
    for index, words_of in enumerate(words):
        cause = Cause.NONE if index < len(proof.accepted) else Cause.WRONG
        write(store, lock, task, under, index, 1, cause)
        attempt = attempt_id(lock.sweep, under.digest, task.digest, index)
        prefix = f"sweeps/{lock.sweep}/tries/{attempt[:2]}/{attempt}/1-1"
        store.put(f"{prefix}/evidence.json", json.dumps(evidence_of(task, words_of)).encode())
        for path, text in proof.inputs.items():
            store.put(f"{prefix}/inputs{path}", text.encode())
    write(store, lock, task, under, len(words), 1, Cause.CONTAINER_LOST)
    monkeypatch.setenv("APIARY_STORE", store.url)
    return Regradable(store, folder.parent, folder, lock.sweep, len(words))


@pytest.mark.docker
def test_what_the_present_verifier_would_change_is_shown_and_the_verdicts_stay(
    made: Regradable, capsys: pytest.CaptureFixture[str]
) -> None:
    results = {key: made.store.get(key) for key in made.store.keys(f"sweeps/{made.sweep}/")}
    arguments = ["regrade", made.sweep, "--path", str(made.dataset)]
    assert run_cli([*arguments, "--json"]) == Exit.DONE
    found = json.loads(capsys.readouterr().out)
    assert len(found["regraded"]) == made.tries
    assert not any(each["changed"] or each["fault"] for each in found["regraded"])
    assert [each["reason"].split(":")[0] for each in found["left_out"]] == ["invalid (harness"]
    # A verifier that accepts nothing any more.
    edit(
        made.folder / "tests" / "test.sh",
        "python3",
        "echo '{\"reward\": 0}' >/logs/verifier/reward.json; exit 0; python3",
    )
    assert run_cli(arguments) == Exit.DONE
    out = capsys.readouterr().out
    assert "Tasks that changed since" in out
    assert "pass → fail" in out
    assert {key: made.store.get(key) for key in results} == results
    kept = [key for key in made.store.keys("") if "/regrades/" in key]
    assert len(kept) == 2


def test_a_task_that_the_sweep_has_not(
    made: Regradable, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_cli(["regrade", made.sweep, "--tasks", "nosuch"]) == Exit.USAGE
    assert "has no task 'nosuch'; it has small" in capsys.readouterr().err
    assert run_cli(["regrade", "nosuch"]) == Exit.USAGE
    assert run_cli(["regrade", made.sweep, "--path", "/nonexistent"]) == Exit.USAGE
