"""A check from files to report; the engine and the driver are replaced."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

import scheduler.dataset.check as check_module
from scheduler.dataset.attempts import Records
from scheduler.dataset.check import Check
from scheduler.dataset.lock import make_lock, write_lock
from scheduler.dataset.proof import EXPECTED, proof_path
from scheduler.dataset.report import COLUMNS, DatasetReport, TaskReport
from scheduler.errors import ClusterError
from scheduler.plan import Plan
from scheduler.stop import StopSignal
from scheduler.view import SweepEnd
from tests.scheduler.dataset.builders import KIT, MANIFESTS, edit, make_task, read_task
from tests.scheduler.report.builders import record
from workers.container.interface import ContainerError, ImageBuildError
from workers.contract.outcome import Cause

CAUSES = {"pass": Cause.NONE, "wrong": Cause.WRONG, "no_reply": Cause.NO_REPLY}


@dataclass
class World:
    """What the engine and the driver do in a test."""

    image: Exception | None = None
    proof: list[str] | Exception = field(default_factory=list)
    engine: Exception | None = None
    driver: Exception | None = None
    causes: dict[str, Cause] = field(
        default_factory=lambda: {name: CAUSES[each] for name, each in EXPECTED.items()}
    )
    silent: frozenset[str] = frozenset()
    """Conditions whose attempts never end."""
    tags: list[str] = field(default_factory=list)
    attempts: int = 0

    async def open(self, node: str) -> World:
        if self.engine is not None:
            raise self.engine
        return self

    async def close(self) -> None:
        pass

    async def ensure_image(self, context: Path, **told: Any) -> str:
        self.tags.append(told["tag"])
        if self.image is not None:
            raise self.image
        return "sha256:x"

    async def prove(self, *_: Any) -> list[str]:
        if isinstance(self.proof, Exception):
            raise self.proof
        return self.proof

    def run(self, plan: Plan, stop: StopSignal, shown: object) -> tuple[SweepEnd, Records]:
        if self.driver is not None:
            raise self.driver
        records = Records()
        self.attempts = len(plan.attempts)
        cells = {cell.cell: cell for cell in plan.cells}
        for each in plan.attempts:
            cell = cells[each.cell]
            name = cell.condition.condition
            if name not in self.silent:
                records.ended(
                    record(
                        self.causes[name],
                        each.attempt,
                        1,
                        task=cell.task.name,
                        condition=name,
                        dimensions={"answer_correct": 0.0},
                        detail="because",
                        phase_seconds={"drive": 2.0},
                    )
                )
        return SweepEnd(plan.sweep, "settled"), records


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    made = World()
    monkeypatch.setattr(check_module, "DockerEngine", made)
    monkeypatch.setattr(check_module, "prove", made.prove)
    monkeypatch.setattr(check_module, "run_attempts", made.run)
    yield made


def run(*folders: Path, store: bool = True, **more: Any) -> DatasetReport:
    dataset = folders[0].parent
    url = (dataset.parent / "store").as_uri() if store else None
    return Check(folders, dataset, MANIFESTS, None, url, **more).run()


def states(report: TaskReport) -> dict[str, str]:
    """The columns that are not fine."""
    found = {column: report.mark_of(column).state for column in COLUMNS}
    return {column: state for column, state in found.items() if state != "ok"}


def test_everything_is_fine(tmp_path: Path, world: World) -> None:
    folders = [make_task(tmp_path, name) for name in ("one", "two")]
    write_lock(
        folders[0].parent, make_lock({each.name: read_task(each).digest for each in folders}, KIT)
    )
    report = run(*folders)
    assert [states(task) for task in report.tasks] == [{}, {}]
    assert (report.personas.state, report.count("fault"), report.count("broken")) == ("ok", 0, 0)
    assert world.attempts == 6
    assert all(task.seconds > 6.0 for task in report.tasks)
    assert report.document()["faults"] == 0


def test_without_lock_and_attempts_they_are_not_due(tmp_path: Path, world: World) -> None:
    report = run(make_task(tmp_path), store=False)
    (task,) = report.tasks
    assert states(task) == dict.fromkeys(("digest", "solver", "refuser", "silent"), "none")
    assert world.attempts == 0


def test_a_task_that_cannot_be_read_stops_at_its_files(tmp_path: Path, world: World) -> None:
    good, bad = make_task(tmp_path, "good"), make_task(tmp_path, "bad")
    edit(bad / "task.toml", 'evaluation_layer = "regression"', 'evaluation_layer = "regresion"')
    proof_path(bad).unlink()
    report = run(good, bad)
    assert states(report.tasks[0]) == {"digest": "none"}
    problems = list(report.tasks[1].problems())
    assert [column for column, _ in problems] == ["schema", "schema"]
    assert "did you mean 'regression'" in problems[0][1]
    assert "no proof of this task" in problems[1][1]
    assert len(world.tags) == 1
    assert world.attempts == 3


def test_what_the_files_say_is_compared(tmp_path: Path, world: World) -> None:
    folder = make_task(tmp_path)
    write_lock(folder.parent, make_lock({"small": read_task(folder).digest}, KIT))
    edit(folder / "fixture.yaml", "Hill", "Hall")
    edit(folder / "task.toml", 'tags = ["messaging"]', 'tags = ["implicit-behavior"]')
    (folder / "instruction.md").write_text("GAMMA request: what is (6 * 7) - 2? Tag me.\n")
    (task,) = run(folder).tasks
    assert states(task) == dict.fromkeys(("digest", "hints", "facts"), "fault")


def test_a_harbor_task_is_looked_at_as_far_as_it_goes(tmp_path: Path, world: World) -> None:
    folder = make_task(tmp_path)
    (folder / "fixture.yaml").unlink()
    edit(proof_path(folder), "    equal: [fixture:user_display_name]\n", "")
    (task,) = run(folder).tasks
    assert states(task) == dict.fromkeys(("digest", "solver", "refuser", "silent"), "none")


def test_an_attempt_that_is_not_asked_for_is_not_made(tmp_path: Path, world: World) -> None:
    folder = make_task(tmp_path)
    edit(proof_path(folder), "  scripted-solver: pass\n", "")
    (task,) = run(folder).tasks
    assert states(task) == {"digest": "none", "solver": "none"}
    assert world.attempts == 2


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"image": ImageBuildError("no such base")}, {"image": "fault"}),
        ({"image": ContainerError("gone")}, {"image": "broken"}),
        ({"engine": ContainerError("no Docker")}, {"image": "broken"}),
        ({"proof": ["silence: lost nothing"]}, {"tests": "fault"}),
        ({"proof": ContainerError("gone")}, {"tests": "broken"}),
        (
            {"driver": ClusterError("no Ray")},
            dict.fromkeys(("solver", "refuser", "silent"), "broken"),
        ),
        ({"silent": frozenset({"scripted-silent"})}, {"silent": "broken"}),
    ],
)
def test_what_is_wrong_is_told_from_what_could_not_be_seen(
    tmp_path: Path, world: World, change: dict[str, Any], expected: dict[str, str]
) -> None:
    for name, value in change.items():
        setattr(world, name, value)
    (task,) = run(make_task(tmp_path)).tasks
    found = {column: state for column, state in states(task).items() if state != "none"}
    assert found == expected
    assert all(line for _, line in task.problems())


@pytest.mark.parametrize(
    ("cause", "state", "line"),
    [
        (Cause.WRONG, "fault", "should come to pass, came to wrong (answer_correct lost): because"),
        (Cause.VERIFIER_CRASH, "fault", "came to invalid: task verifier_crash"),
        (Cause.NODE_LOST, "broken", "came to invalid: harness node_lost"),
    ],
)
def test_an_attempt_that_came_to_something_else(
    tmp_path: Path, world: World, cause: Cause, state: str, line: str
) -> None:
    world.causes["scripted-solver"] = cause
    (task,) = run(make_task(tmp_path)).tasks
    assert states(task) == {"digest": "none", "solver": state}
    assert any(line in told for _, told in task.problems())


def test_the_image_is_the_one_that_the_attempts_will_look_for(tmp_path: Path, world: World) -> None:
    folder = make_task(tmp_path)
    edit(folder / "environment" / "Dockerfile", "WORKDIR", "ARG MARKER_NONCE\nWORKDIR")
    run(folder, store=False)
    run(folder)
    assert len(set(world.tags)) == 2


def test_an_operator_who_stops(tmp_path: Path, world: World) -> None:
    stop = StopSignal()
    stop.request()
    report = run(make_task(tmp_path), stop=stop)
    assert report.interrupted
    assert world.attempts == 0
    assert replace(report, tasks=[]).count("broken") == 0
