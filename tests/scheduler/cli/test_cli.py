from __future__ import annotations

import subprocess
import sys

import click
import pytest

from scheduler.cli import COMMANDS, LazyGroup, apiary, run_cli
from scheduler.cli.exits import Exit


def test_help_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_cli(["--help"]) == Exit.DONE
    shown = capsys.readouterr().out
    for name, words in COMMANDS.items():
        assert f"  {name} " in shown
        assert words in shown


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_has_help_that_begins_as_the_table_says(name: str) -> None:
    assert isinstance(apiary, LazyGroup)
    command = apiary.get_command(click.Context(apiary), name)
    assert command is not None
    assert command.name == name
    assert command.help is not None
    assert command.help.split("\n")[0] == COMMANDS[name]
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            assert parameter.help, f"{name} {parameter.opts} has no help"


@pytest.mark.parametrize("arguments", [["nosuch"], ["plan", "--nosuch"], ["status", "--store"]])
def test_a_wrong_command_line_is_usage(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_cli(arguments) == Exit.USAGE
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "Error: No such" in captured.err or "requires an argument" in captured.err


def test_a_slip_is_told_the_right_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_cli(["reprot"]) == Exit.USAGE
    assert "Did you mean 'report'?" in capsys.readouterr().err


def test_a_bug_shows_its_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("no such number")

    monkeypatch.setattr(apiary, "main", broken)
    assert run_cli(["plan"]) == Exit.BUG
    shown = capsys.readouterr().err
    assert "ZeroDivisionError: no such number" in shown
    assert "this is a bug of Apiary" in shown


@pytest.mark.long
@pytest.mark.parametrize("arguments", [["--help"], ["plan", "--help"], ["show", "ab"], ["status"]])
def test_quick_commands_load_neither_ray_nor_boto3_nor_docker(
    arguments: list[str], tmp_path: object
) -> None:
    program = (
        "import sys; from scheduler.cli import run_cli; run_cli(sys.argv[1:]); "
        "print(sorted({'ray', 'boto3', 'docker', 'scipy'} & sys.modules.keys()))"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
        cwd=str(tmp_path),
        env={"PYTHONPATH": ":".join(path for path in sys.path if path), "PATH": "/usr/bin:/bin"},
    )
    heavy = "['scipy']" if arguments == ["status"] else "[]"
    assert ended.stdout.splitlines()[-1] == heavy
