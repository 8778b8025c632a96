from __future__ import annotations

import json

import pytest

from scheduler.cli import run_cli
from scheduler.cli.exits import Exit
from tests.scheduler.cli.builders import World


def test_every_task_is_listed_with_its_layers_attempts(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_cli(["tasks", "list", "--json"]) == Exit.DONE
    shown = json.loads(capsys.readouterr().out)
    assert [(task["name"], task["layer"], task["attempts"]) for task in shown] == [
        ("buzz-native/alpha", "regression", 1),
        ("buzz-native/beta", "workflow", 3),
    ]
    assert run_cli(["tasks", "list", "--path", "manifests/tasks"]) == Exit.DONE
    assert shown[0]["digest"][:12] in capsys.readouterr().out


@pytest.mark.parametrize(
    ("path", "message"), [("nowhere", "there is no folder"), ("manifests", "has no tasks")]
)
def test_a_folder_without_tasks_is_refused(
    world: World, capsys: pytest.CaptureFixture[str], path: str, message: str
) -> None:
    assert run_cli(["tasks", "list", "--path", path]) == Exit.USAGE
    assert message in capsys.readouterr().err
