"""``apiary tasks show``, ``lock``, ``new`` and ``check`` as they are typed."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import scheduler.cli.running
import scheduler.dataset.check
from scheduler.cli import run_cli
from scheduler.cli.exits import Exit
from scheduler.dataset.report import OK, DatasetReport, Mark, TaskReport
from tests.scheduler.cli.builders import World
from tests.scheduler.dataset.builders import KIT
from workers.container.interface import ContainerError

LOCK = Path("manifests") / "tasks.lock.yaml"


@pytest.fixture
def whole(world: World) -> World:
    """The world with the shipped kit and no proof for its tasks."""
    kit = world.root / "manifests" / "verifier_kit"
    shutil.rmtree(kit)
    shutil.copytree(KIT, kit, ignore=shutil.ignore_patterns("__pycache__"))
    return world


def spoken(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, Any, str]:
    """Exit code, JSON of standard output, standard error."""
    code = run_cli([*arguments, "--json"])
    told = capsys.readouterr()
    return code, json.loads(told.out) if told.out else None, told.err


def test_a_lock_is_written_and_says_what_changed(
    whole: World, capsys: pytest.CaptureFixture[str]
) -> None:
    code, told, _ = spoken(capsys, "tasks", "lock")
    assert (code, len(told["changes"]), told["lock"]) == (Exit.DONE, 2, str(LOCK))
    assert spoken(capsys, "tasks", "lock")[1]["changes"] == []
    (whole.root / "manifests" / "tasks" / "beta" / "instruction.md").write_text("Do it.\n")
    assert run_cli(["tasks", "lock", "--path", "manifests/tasks/beta"]) == Exit.DONE
    shown = capsys.readouterr()
    assert shown.out.startswith("beta: ")
    assert "→" in shown.out
    assert "2 tasks, 1 changed" in shown.err


def test_a_task_is_shown(whole: World, capsys: pytest.CaptureFixture[str]) -> None:
    code, told, _ = spoken(capsys, "tasks", "show", "alpha")
    assert (code, told["name"], told["pinned"]) == (Exit.DONE, "buzz-native/alpha", None)
    assert (told["dimensions"], told["refused"]) == ([], 0)
    assert run_cli(["tasks", "new", "gamma"]) == Exit.DONE
    assert run_cli(["tasks", "lock"]) == Exit.DONE
    capsys.readouterr()
    assert run_cli(["tasks", "show", "gamma"]) == Exit.DONE
    shown = capsys.readouterr().out
    for words in (
        "Grace Ada Hill",
        "(pinned)",
        "answer_correct, evidence_complete, reply_to_thread, user_mentioned",
        "1 transcripts accepted, 5 refused",
        "GAMMA request",
    ):
        assert words in shown


def test_a_wrong_name_is_told_with_the_nearest(
    whole: World, capsys: pytest.CaptureFixture[str]
) -> None:
    for command in ("show", "check"):
        assert run_cli(["tasks", command, "alpah"]) == Exit.USAGE
        assert "did you mean 'alpha'?); there are alpha, beta" in capsys.readouterr().err


def test_a_new_task_joins_a_lock_that_is_there(
    whole: World, capsys: pytest.CaptureFixture[str]
) -> None:
    code, told, _ = spoken(capsys, "tasks", "new", "gamma", "--layer", "workflow")
    assert (code, len(told["files"])) == (Exit.DONE, 8)
    assert not LOCK.exists()
    spoken(capsys, "tasks", "lock")
    assert spoken(capsys, "tasks", "new", "delta")[0] == Exit.DONE
    assert spoken(capsys, "tasks", "lock")[1]["changes"] == []
    tasks = {each["name"]: each for each in spoken(capsys, "tasks", "list")[1]}
    assert tasks["buzz-native/gamma"]["attempts"] == 3
    assert tasks["buzz-native/delta"]["attempts"] == 1


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("Alpha", "no name for a task"),
        ("proofs", "no name for a task"),
        ("../x", "no name for a task"),
        ("alpha", "there already"),
    ],
)
def test_a_new_task_that_cannot_be(
    whole: World, capsys: pytest.CaptureFixture[str], name: str, message: str
) -> None:
    before = sorted(whole.root.rglob("*"))
    assert run_cli(["tasks", "new", name]) == Exit.USAGE
    assert message in capsys.readouterr().err
    assert sorted(whole.root.rglob("*")) == before


def test_a_new_task_needs_the_kit_to_be_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run_cli(["tasks", "new", "gamma", "--path", "mine"]) == Exit.USAGE
    assert "a task's digest covers the verifier kit" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "name the tasks to check, or give --all"),
        (["alpha", "--all"], "not both"),
        (["--path", "nowhere", "--all"], "no folder nowhere"),
    ],
)
def test_a_check_must_be_told_of_what(
    whole: World, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    assert run_cli(["tasks", "check", *arguments]) == Exit.USAGE
    assert message in capsys.readouterr().err


class FakeCheck:
    """Takes the place of ``Check``; says what a test wants."""

    marks: dict[str, Mark]
    interrupted = False
    seen: dict[str, Any]

    def __init__(self, folders: Any, dataset: Path, *rest: Any, **more: Any) -> None:
        FakeCheck.seen = {"folders": folders, "dataset": dataset, "store": rest[2], **more}

    def run(self) -> DatasetReport:
        tasks = [TaskReport(each.name, self.marks, 1.25) for each in FakeCheck.seen["folders"]]
        return DatasetReport(tasks, OK, 61.0, self.interrupted)


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> type[FakeCheck]:
    monkeypatch.setattr(scheduler.dataset.check, "Check", FakeCheck)
    FakeCheck.marks = {"schema": OK}
    FakeCheck.interrupted = False
    return FakeCheck


@pytest.mark.parametrize(
    ("marks", "interrupted", "code"),
    [
        ({"schema": OK}, False, Exit.DONE),
        ({"facts": Mark("fault", ("x",))}, False, Exit.USAGE),
        ({"image": Mark("broken", ("x",))}, False, Exit.INFRASTRUCTURE),
        ({"image": Mark("broken"), "facts": Mark("fault", ("x",))}, False, Exit.USAGE),
        ({"facts": Mark("fault", ("x",))}, True, Exit.INTERRUPTED),
    ],
)
def test_the_exit_code_tells_wrong_from_unknown(
    whole: World,
    fake: type[FakeCheck],
    capsys: pytest.CaptureFixture[str],
    marks: dict[str, Mark],
    interrupted: bool,
    code: Exit,
) -> None:
    fake.marks, fake.interrupted = marks, interrupted
    found, told, _ = spoken(capsys, "tasks", "check", "--all")
    assert found == code
    assert [task["name"] for task in told["tasks"]] == ["alpha", "beta"]


def test_the_table_has_a_line_for_everything_that_is_wrong(
    whole: World, fake: type[FakeCheck], capsys: pytest.CaptureFixture[str]
) -> None:
    fake.marks = {"schema": OK, "facts": Mark("fault", ("the [count] differs",))}
    assert run_cli(["tasks", "check", "alpha"]) == Exit.USAGE
    shown = capsys.readouterr().out
    assert "alpha: facts: the [count] differs" in shown
    assert "1 task, 1 fault, 0 not to be told, in 1 min 01 s" in shown
    assert "✓" in shown and "✗" in shown and "–" in shown


def test_where_attempts_are_made(
    whole: World, fake: type[FakeCheck], capsys: pytest.CaptureFixture[str]
) -> None:
    spoken(capsys, "tasks", "check", "alpha", "--no-attempts")
    assert fake.seen["store"] is None
    spoken(capsys, "tasks", "check", "alpha", "--store", "file:///kept")
    assert fake.seen["store"] == "file:///kept"
    spoken(capsys, "tasks", "check", "--path", "manifests/tasks/alpha")
    assert fake.seen["dataset"].resolve() == (whole.root / "manifests" / "tasks").resolve()
    url = str(fake.seen["store"])
    assert url.startswith("file:///")
    assert not Path(url.removeprefix("file://")).exists()


def test_a_base_image_that_is_not_there_is_infrastructure(
    whole: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def missing(reference: str) -> str:
        raise ContainerError(f"no image {reference}")

    monkeypatch.setattr(scheduler.cli.running, "image_digest", missing)
    monkeypatch.setenv("APIARY_BASE_IMAGE", "nothing:here")
    assert run_cli(["tasks", "check", "alpha"]) == Exit.INFRASTRUCTURE
    assert "no image nothing:here" in capsys.readouterr().err
