from __future__ import annotations

from pathlib import Path

import pytest

from scheduler.dataset.proof import EXPECTED, load_proof, proof_path
from scheduler.manifest import ManifestError
from tests.scheduler.dataset.builders import edit, make_task


def test_a_proof_is_read_from_beside_the_folder(tmp_path: Path) -> None:
    folder = make_task(tmp_path)
    assert proof_path(folder) == tmp_path / "tasks" / "proofs" / "small.yaml"
    proof = load_proof(folder)
    assert proof.dimensions == (
        "answer_correct",
        "reply_to_thread",
        "user_mentioned",
        "evidence_complete",
    )
    assert proof.attempts == EXPECTED


def test_attempts_that_are_left_out_are_the_usual_ones(tmp_path: Path) -> None:
    folder = make_task(tmp_path)
    text = proof_path(folder).read_text("utf-8")
    proof_path(folder).write_text(text[: text.index("# What attempts")])
    assert load_proof(folder).attempts == EXPECTED


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("loses: [answer_correct]\n", "losses: [answer_correct]\n", "did you mean 'loses'?"),
        ("loses: [answer_correct]\n", "loses: []\n", "at least 1"),
        ("name: a wrong answer", "name: truncated", "two transcripts are called 'truncated'"),
        ("scripted-silent: no_reply", "scripted-silent: pess", "did you mean 'pass'?"),
        ("scripted-silent: no_reply", "scripted-slow: pass", "no condition 'scripted-slow'"),
        ("    stands_in: [instruction.md]\n", "", "a fact needs equal, stands_in or absent_from"),
    ],
)
def test_a_wrong_proof_is_refused_with_its_line(
    tmp_path: Path, old: str, new: str, message: str
) -> None:
    folder = make_task(tmp_path)
    edit(proof_path(folder), old, new)
    with pytest.raises(ManifestError) as refused:
        load_proof(folder)
    assert message in str(refused.value)
    assert "small.yaml:" in str(refused.value)


def test_a_task_without_a_proof(tmp_path: Path) -> None:
    folder = make_task(tmp_path)
    proof_path(folder).unlink()
    with pytest.raises(ManifestError, match="no proof of this task"):
        load_proof(folder)
