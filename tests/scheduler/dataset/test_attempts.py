from __future__ import annotations

from pathlib import Path

import pytest

from scheduler.dataset.attempts import (
    Records,
    came_to,
    is_harness_fault,
    lost_dimensions,
    only,
    plan_attempts,
)
from scheduler.dataset.proof import EXPECTED
from scheduler.view import SweepView
from tests.scheduler.cli.builders import view_of
from tests.scheduler.dataset.builders import MANIFESTS, make_task
from tests.scheduler.report.builders import record
from workers.contract.outcome import Cause
from workers.contract.result import TryRecord

ATTEMPT = "ab" * 32


def test_one_attempt_of_each_task_under_each_condition(tmp_path: Path) -> None:
    folders = [make_task(tmp_path, name) for name in ("one", "two")]
    make_task(tmp_path, "three", "workflow")
    plan = plan_attempts(folders, tmp_path / "tasks", MANIFESTS, tmp_path.as_uri(), None)
    assert {task.bare_name for task in plan.tasks} == {"one", "two"}
    assert plan.conditions == tuple(EXPECTED)
    assert len(plan.attempts) == 6
    assert (plan.spec.network, plan.spec.store) == ("sealed", tmp_path.as_uri())
    assert {each.provider for each in plan.spec.endpoints.values()} == {"scripted"}
    wanted = [("one", "scripted-solver"), ("two", "scripted-silent")]
    left = only(plan, [*wanted, ("two", "nobody")])
    cells = {cell.cell: (cell.task.bare_name, cell.condition.condition) for cell in left.cells}
    assert [cells[each.cell] for each in left.attempts] == wanted


@pytest.mark.parametrize(
    ("cause", "expected", "harness"),
    [
        (Cause.NONE, "pass", False),
        (Cause.WRONG, "wrong", False),
        (Cause.NO_REPLY, "no_reply", False),
        (Cause.READINESS_TIMEOUT, "invalid: harness readiness_timeout", True),
        (Cause.CANCELLED, "invalid: operator cancelled", True),
        (Cause.VERIFIER_CRASH, "invalid: task verifier_crash", False),
    ],
)
def test_what_an_attempt_came_to(cause: Cause, expected: str, harness: bool) -> None:
    made = record(cause, ATTEMPT, 1)
    assert came_to(made) == expected
    assert is_harness_fault(made) is harness


def test_lost_dimensions() -> None:
    made = record(Cause.WRONG, ATTEMPT, 1, dimensions={"a": 1.0, "b": 0.0, "c": 0.5})
    assert lost_dimensions(made) == {"b", "c"}


class Heard:
    """An observer that counts."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def moved(self, view: SweepView) -> None:
        self.told.append("moved")

    def ended(self, record: TryRecord) -> None:
        self.told.append("ended")

    def note(self, text: str) -> None:
        self.told.append(text)


def test_the_last_try_of_a_cell_counts_and_everything_is_passed_on() -> None:
    heard = Heard()
    for shown in (None, heard):
        records = Records(shown)
        records.moved(view_of("s"))
        for number, cause in enumerate((Cause.NODE_LOST, Cause.WRONG), 1):
            records.ended(record(cause, ATTEMPT, number, task="buzz-native/a", condition="c"))
        records.note("hello")
        assert [each.cause for each in records.by_cell.values()] == [Cause.WRONG]
        assert set(records.by_cell) == {("a", "c")}
    assert heard.told == ["moved", "ended", "ended", "hello"]
