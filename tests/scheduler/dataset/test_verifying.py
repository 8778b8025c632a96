from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import pytest

from scheduler.dataset.proof import Proof, load_proof
from scheduler.dataset.verifying import Verdict, misjudged, prove
from tests.scheduler.dataset.builders import KIT, make_task, read_task
from workers.container.interface import (
    ContainerSpec,
    ContainerTimeoutError,
    Engine,
    ExitState,
)

DIMENSIONS = ("answer_correct", "reply_to_thread", "user_mentioned", "evidence_complete")


def proof_of(tmp_path: Path) -> Proof:
    return load_proof(make_task(tmp_path))


def verdict(*lost: str, reward: float | None = None) -> Verdict:
    scores = {name: float(name not in lost) for name in DIMENSIONS}
    return Verdict({**scores, "reward": float(not lost) if reward is None else reward})


def right(proof: Proof) -> dict[str, Verdict]:
    """The verdicts that a proof asks for."""
    found = {each.name: verdict() for each in proof.accepted}
    return {**found, **{each.name: verdict(*each.loses) for each in proof.refused}}


@pytest.mark.parametrize(
    ("name", "told", "line"),
    [
        ("in the thread", verdict("user_mentioned"), "should lose nothing, lost user_mentioned"),
        ("in the thread", verdict(reward=0.0), "reward 0 for a transcript that loses nothing"),
        ("truncated", verdict(), "should lose evidence_complete, lost nothing"),
        (
            "truncated",
            verdict("evidence_complete", reward=1.0),
            "reward 1 for a transcript that loses evidence_complete",
        ),
        (
            "at the top level",
            verdict("reply_to_thread", "user_mentioned"),
            "should lose reply_to_thread, lost reply_to_thread, user_mentioned",
        ),
        ("silence", Verdict({}, "the tests ended with 1: no"), "the tests ended with 1: no"),
        (
            "truncated",
            Verdict({"reward": 0.0, "answer_correct": 1.0}),
            "the tests have no dimension evidence_complete",
        ),
    ],
)
def test_a_verdict_that_is_not_the_proofs(
    tmp_path: Path, name: str, told: Verdict, line: str
) -> None:
    proof = proof_of(tmp_path)
    assert list(misjudged(proof, right(proof))) == []
    assert list(misjudged(proof, {**right(proof), name: told})) == [f"{name}: {line}"]


def test_a_dimension_that_no_transcript_loses(tmp_path: Path) -> None:
    proof = proof_of(tmp_path)
    verdicts = {
        name: Verdict({**each.dimensions, "unseen": 1.0}) for name, each in right(proof).items()
    }
    assert list(misjudged(proof, verdicts)) == ["no refused transcript loses unseen"]


@dataclass
class FakeEngine:
    """Runs nothing; leaves in a case's folder what a test says."""

    files: dict[str, str] = field(default_factory=dict)
    late: bool = False
    specs: list[ContainerSpec] = field(default_factory=list)
    seen: dict[str, str] = field(default_factory=dict)

    async def run_once(self, spec: ContainerSpec, timeout_s: float) -> tuple[ExitState, str]:
        self.specs.append(spec)
        mounts = {mount.target: mount for mount in spec.mounts}
        for target in ("/tests", "/cases", "/inputs"):
            assert mounts[target].read_only
        for path in sorted(mounts["/tests"].source.rglob("*")):
            self.seen[path.relative_to(mounts["/tests"].source).as_posix()] = ""
        if self.late:
            raise ContainerTimeoutError("late")
        for case in sorted(mounts["/cases"].source.iterdir()):
            assert (case / "buzz-evidence.json").is_file()
            out = mounts["/out"].source / case.name
            out.mkdir()
            for name, text in self.files.items():
                (out / name).write_text(text)
        return ExitState(0, False), ""


@pytest.mark.parametrize(
    ("files", "line"),
    [
        ({}, "the tests ended with nothing"),
        ({"exit_code": "3\n", "output.log": "Traceback\nKeyError: 1\n"}, "the tests ended with 3"),
        ({"exit_code": "0\n"}, "no reward.json that can be read"),
        ({"exit_code": "0\n", "reward.json": "[1]"}, "no 'reward'"),
        ({"exit_code": "0\n", "reward.json": '{"reward": true}'}, "'reward' is not a number"),
        ({"exit_code": "0\n", "reward.json": "x" * 70_000}, "no reward.json that can be read"),
    ],
)
def test_tests_without_a_usable_word(tmp_path: Path, files: dict[str, str], line: str) -> None:
    folder = make_task(tmp_path)
    fake, proof = FakeEngine(files), load_proof(folder)
    faults = asyncio.run(prove(cast(Engine, fake), "image", folder, KIT, read_task(folder), proof))
    assert len(faults) == len(proof.accepted) + len(proof.refused)
    assert all(line in fault for fault in faults)
    (spec,) = fake.specs
    assert (spec.network, spec.harden) == ("none", True)
    assert {"test.sh", "verify.py", "verifier_kit/evidence.py"} <= fake.seen.keys()
    assert not [name for name in fake.seen if "__pycache__" in name]


def test_tests_that_never_end(tmp_path: Path) -> None:
    folder = make_task(tmp_path)
    proof = load_proof(folder)
    faults = asyncio.run(
        prove(cast(Engine, FakeEngine(late=True)), "image", folder, KIT, read_task(folder), proof)
    )
    assert faults == ["the tests took more than 240 s for 6 transcripts"]
