from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest

import scheduler.dataset.regrading
from scheduler.dataset.regrade_format import Regrade
from scheduler.dataset.regrading import PresentTask, keep, regrade, verdict_now
from scheduler.dataset.verifying import Verdict
from scheduler.lock import Lock
from scheduler.report.collect import collect_under
from tests.scheduler.dataset.builders import KIT, make_task, read_task
from tests.scheduler.report.builders import record
from tests.scheduler.report.generated import condition_of, make_lock, write
from workers.container.interface import (
    ContainerSpec,
    ContainerTimeoutError,
    Engine,
    ExitState,
    ImageBuildError,
)
from workers.contract.base import sha256_hex
from workers.contract.outcome import Cause
from workers.contract.outcome import Verdict as Outcome
from workers.contract.spec import attempt_id, cell_id
from workers.storage import Store, open_store


@dataclass
class FakeEngine:
    """Gives each case the reward that its evidence asks for."""

    build_fails: bool = False
    containers: list[int] = field(default_factory=list)
    inputs: list[dict[str, bytes]] = field(default_factory=list)

    async def ensure_image(self, context: Path, **_: Any) -> str:
        assert (context / "Dockerfile").is_file()
        if self.build_fails:
            raise ImageBuildError("no such base")
        return "image"

    async def run_once(self, spec: ContainerSpec, timeout_s: float) -> tuple[ExitState, str]:
        mounts = {mount.target: mount.source for mount in spec.mounts}
        cases = sorted(mounts["/cases"].iterdir())
        self.containers.append(len(cases))
        root = mounts["/inputs"]
        self.inputs.append(
            {p.relative_to(root).as_posix(): p.read_bytes() for p in root.rglob("*") if p.is_file()}
        )
        told = [json.loads((case / "buzz-evidence.json").read_bytes()) for case in cases]
        if any(each.get("hangs") for each in told):
            raise ContainerTimeoutError("late")
        for case, each in zip(cases, told, strict=True):
            out = mounts["/out"] / case.name
            out.mkdir()
            (out / "exit_code").write_text(str(each.get("exit_code", 0)))
            (out / "reward.json").write_text(json.dumps(each["says"]))
        return ExitState(0, False), ""


@dataclass
class Stored:
    """A sweep of one task with what its tries left."""

    store: Store
    lock: Lock
    present: dict[str, PresentTask]

    def put(self, index: int, cause: Cause, evidence: dict[str, Any] | None, **inputs: str) -> None:
        """One attempt of one try."""
        task, under = self.lock.tasks[0], self.lock.conditions[0]
        write(self.store, self.lock, task, under, index, 1, cause)
        attempt = attempt_id(self.lock.sweep, under.digest, task.digest, index)
        prefix = f"sweeps/{self.lock.sweep}/tries/{attempt[:2]}/{attempt}/1-1"
        if evidence is not None:
            self.store.put(f"{prefix}/evidence.json", json.dumps(evidence).encode())
        for name, text in inputs.items():
            self.store.put(f"{prefix}/inputs/opt/{name}", text.encode())

    def run(self, engine: FakeEngine) -> Regrade:
        results = collect_under(self.store, self.lock)
        return asyncio.run(
            regrade(cast(Engine, engine), self.store, self.lock, results, self.present, KIT)
        )


def stored(tmp_path: Path, *, attempts: int, inputs: tuple[str, ...] = ()) -> Stored:
    folder = make_task(tmp_path)
    made = read_task(folder)
    assert made.fixture is not None
    now = made.model_copy(
        update={"fixture": made.fixture.model_copy(update={"verifier_inputs": inputs})}
    )
    then = made.model_copy(update={"digest": sha256_hex(b"then")})
    under = condition_of("solver")
    lock = make_lock(conditions=1, regression=1, workflow=0).model_copy(
        update={
            "tasks": (then,),
            "conditions": (under,),
            "attempts": {cell_id(under.digest, then.digest): attempts},
        }
    )
    store = open_store(f"file://{tmp_path / 'store'}")
    return Stored(store, lock, {made.name: PresentTask(folder, now)})


def says(reward: float, **dimensions: float) -> dict[str, Any]:
    return {"says": {"reward": reward, **dimensions}}


def test_it_shows_which_verdicts_would_change(tmp_path: Path) -> None:
    sweep = stored(tmp_path, attempts=4)
    sweep.put(0, Cause.NONE, says(1.0, answer=1.0, thread=1.0))
    sweep.put(1, Cause.NONE, says(0.0, answer=0.0, thread=1.0))
    sweep.put(2, Cause.WRONG, says(1.0, answer=1.0, thread=1.0))
    sweep.put(3, Cause.AGENT_TIMEOUT, says(1.0, answer=1.0, thread=1.0))
    made = sweep.run(FakeEngine())
    verdicts = [(each.old_verdict, each.new_verdict, each.changed) for each in made.regraded]
    assert verdicts == [
        ("pass", "pass", False),
        ("pass", "fail", True),
        ("fail", "pass", True),
        ("fail", "fail", False),
    ]
    assert made.regraded[1].moved["answer"] == (1.0, 0.0)
    assert made.regraded[1].old_digest != made.regraded[1].new_digest
    assert made.tasks[0].new_digest == sweep.present[made.tasks[0].task].task.digest
    assert made.left_out == ()


def test_what_its_verifier_lost_is_verified_and_what_the_harness_lost_is_listed(
    tmp_path: Path,
) -> None:
    sweep = stored(tmp_path, attempts=5)
    sweep.put(0, Cause.VERIFIER_CRASH, says(1.0))
    sweep.put(1, Cause.CONTAINER_LOST, says(1.0))
    sweep.put(2, Cause.NONE, None)
    sweep.put(3, Cause.NONE, {"exit_code": 3, "says": {}})
    made = sweep.run(FakeEngine())
    assert [(each.old_verdict, each.new_verdict) for each in made.regraded] == [
        ("invalid", "pass"),
        ("pass", "invalid"),
    ]
    assert "ended with 3" in made.regraded[1].fault
    assert [each.reason for each in made.left_out] == [
        "invalid (harness: container_lost): it has no evidence to judge",
        "evidence.json is not stored",
    ]


def test_inputs_are_those_that_the_try_stored(tmp_path: Path) -> None:
    sweep = stored(tmp_path, attempts=4, inputs=("/opt/marker",))
    for index, marker in enumerate(("one", "one", "two")):
        sweep.put(index, Cause.NONE, says(1.0), marker=marker)
    sweep.put(3, Cause.NONE, says(1.0))
    engine = FakeEngine()
    made = sweep.run(engine)
    assert sorted(engine.containers) == [1, 2]
    assert {each["opt/marker"] for each in engine.inputs} == {b"one", b"two"}
    assert [each.reason for each in made.left_out] == ["inputs/opt/marker is not stored"]


def test_one_that_never_ends_does_not_take_the_word_of_the_others(tmp_path: Path) -> None:
    sweep = stored(tmp_path, attempts=3)
    sweep.put(0, Cause.NONE, says(1.0))
    sweep.put(1, Cause.NONE, {"hangs": True})
    sweep.put(2, Cause.NONE, says(1.0))
    made = sweep.run(FakeEngine())
    assert len(made.regraded) == 2
    assert [each.reason for each in made.left_out] == ["late"]


def test_many_tries_go_into_few_containers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scheduler.dataset.regrading, "BATCH", 2)
    sweep = stored(tmp_path, attempts=5)
    for index in range(5):
        sweep.put(index, Cause.NONE, says(1.0))
    engine = FakeEngine()
    assert len(sweep.run(engine).regraded) == 5
    assert sorted(engine.containers) == [1, 2, 2]


def test_without_an_image_or_a_task_nothing_is_verified(tmp_path: Path) -> None:
    sweep = stored(tmp_path, attempts=1)
    sweep.put(0, Cause.NONE, says(1.0))
    made = sweep.run(FakeEngine(build_fails=True))
    assert [each.reason for each in made.left_out] == ["image: no such base"]
    sweep.present.clear()
    made = sweep.run(FakeEngine())
    assert [each.reason for each in made.left_out] == [
        "there is no task of this name in the data set now"
    ]


@pytest.mark.parametrize("says", [2.0, -1.0, float("nan"), float("inf")])
def test_a_reward_out_of_range_is_no_word(tmp_path: Path, says: float) -> None:
    sweep = stored(tmp_path, attempts=1)
    sweep.put(0, Cause.NONE, {"says": {"reward": says}})
    (row,) = sweep.run(FakeEngine()).regraded
    assert (row.new_verdict, row.changed) == ("invalid", True)
    assert "reward" in row.fault


def test_a_partial_reward_is_a_fail() -> None:
    before = record(Cause.NONE, "0" * 32, 1)
    assert verdict_now(before, Verdict({"reward": 0.99})) is Outcome.FAIL
    assert verdict_now(before, Verdict({"reward": 1.0})) is Outcome.PASS


def test_a_regrade_is_kept_and_never_over_another(tmp_path: Path) -> None:
    sweep = stored(tmp_path, attempts=1)
    sweep.put(0, Cause.NONE, says(1.0))
    made = sweep.run(FakeEngine())
    before = {key: sweep.store.get(key) for key in sweep.store.keys("")}
    first, second = keep(sweep.store, made), keep(sweep.store, made)
    assert first != second
    assert Regrade.from_json(sweep.store.get(second), second) == made
    assert all(sweep.store.get(key) == data for key, data in before.items())
