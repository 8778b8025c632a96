from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest

from scheduler.dataset.agreement import disagreements
from scheduler.dataset.hints import instruction_faults
from scheduler.dataset.places import TaskTexts
from scheduler.dataset.proof import Refused, load_proof
from scheduler.dataset.skeleton import is_name, write_skeleton
from scheduler.dataset.transcript import evidence_of
from tests.scheduler.dataset.builders import MANIFESTS, make_task, read_task
from workers.model import answers


def verifier(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The verifier of a skeleton, with the kit where a container has it: on its path."""
    monkeypatch.syspath_prepend(str(MANIFESTS))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    spec = importlib.util.spec_from_file_location("skeleton", folder / "tests" / "verify.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.VERIFIER


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("a", True),
        ("reply-to-2", True),
        ("A", False),
        ("a--b", False),
        ("-a", False),
        ("a_b", False),
        ("a/b", False),
        ("..", False),
        ("a" * 65, False),
    ],
)
def test_names(name: str, expected: bool) -> None:
    assert is_name(name) is expected


@pytest.mark.parametrize("layer", ["regression", "workflow"])
def test_a_new_task_is_whole_and_right(
    tmp_path: Path, layer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = make_task(tmp_path, "my-task", layer)
    task, proof = read_task(folder), load_proof(folder)
    assert (task.name, task.layer) == ("buzz-native/my-task", layer)
    assert instruction_faults(task) == []
    assert disagreements(proof.facts, TaskTexts(folder, task)) == []
    judge = verifier(folder, monkeypatch).judge
    for transcript in (*proof.accepted, *proof.refused):
        scores = judge(evidence_of(task, transcript)).reward
        lost = {name for name, score in scores.items() if score < 1.0} - {"reward"}
        wanted = set(transcript.loses) if isinstance(transcript, Refused) else set()
        assert lost == wanted, transcript.name
        assert scores["reward"] == float(not wanted)


def test_the_solver_can_read_its_question(tmp_path: Path) -> None:
    task = read_task(make_task(tmp_path))
    assert answers.labelled_sum(task.instruction) == "GAMMA: 40"


def test_every_file_is_told(tmp_path: Path) -> None:
    folder = tmp_path / "tasks" / "x"
    written = write_skeleton(folder, "workflow")
    found = {path for path in (tmp_path / "tasks").rglob("*") if path.is_file()}
    assert set(written) == found
    assert len(found) == 8
