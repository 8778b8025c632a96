"""The README says what is there, and what is there stands in the README."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from scheduler.cli import COMMANDS, apiary
from scheduler.cli.exits import Exit
from tests.layout.test_stages import STAGES, walk
from tests.layout.tree import ROOT
from workers.contract.outcome import Blame, Cause

README = (ROOT / "README.md").read_text("utf-8")
PAGES = sorted(
    [
        *(ROOT / name for name in ("README.md", "CHANGELOG.md", "manifests/README.md")),
        *(ROOT / "docs").rglob("*.md"),
        *(ROOT / "deploy").rglob("*.md"),
    ]
)
LINES_OF_SHELL = r"```(?:console|sh)\n(.*?)```"


def shell_lines(text: str = README) -> Iterator[str]:
    """Every command of a page's shell blocks, continued lines joined."""
    for block in re.findall(LINES_OF_SHELL, text, flags=re.DOTALL):
        for line in block.replace("\\\n", " ").splitlines():
            command = line.strip().removeprefix("$ ").partition(" #")[0].strip()
            if line.startswith("$ ") or command.startswith("apiary "):
                yield command


def check_command_line(line: str) -> None:
    """An ``apiary`` line names commands, flags and files that are there."""
    words = line.partition(" > ")[0].replace("'", "").split()[1:]
    command: click.Command | None = apiary
    while isinstance(command, click.Group):
        assert words, line
        command, words = command.get_command(click.Context(command), words[0]), words[1:]
    assert command is not None, line
    known = {option for each in command.params for option in each.opts} | {"--help"}
    flags = {word.partition("=")[0] for word in words if word.startswith("-")}
    assert flags <= known, line
    shipped = [word for word in words if word.startswith(("manifests/", "deploy/"))]
    assert all((ROOT / file).exists() for file in shipped), line


def test_the_help_block_is_the_real_help() -> None:
    context = click.Context(
        apiary, info_name="apiary", terminal_width=80, **apiary.context_settings
    )
    shown = "\n".join(line.rstrip() for line in apiary.get_help(context).splitlines())
    assert f"```text\n{shown}\n```" in README, "run docs/write_help.py"


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_stands_in_the_readme(name: str) -> None:
    assert re.search(rf"\bapiary {name}\b|^  {name} ", README, flags=re.MULTILINE)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_command_line_that_is_shown_can_be_given(page: Path) -> None:
    lines = [line for line in shell_lines(page.read_text("utf-8")) if line.startswith("apiary ")]
    assert len(lines) >= 8 or page.name != "README.md" or page.parent != ROOT
    for line in lines:
        check_command_line(line)


def test_the_scripts_that_are_shown_are_there() -> None:
    for script in re.findall(r"bash ([a-z./_-]+\.sh)", README):
        assert (ROOT / script).stat().st_mode & 0o100, script


def test_the_eight_stops_are_the_stages_with_their_files() -> None:
    stops = re.findall(r"^(\d)\. `([a-z/_.]+)`:", README, flags=re.MULTILINE)
    assert [int(number) for number, _ in stops] == [number for number, *_ in walk()]
    for (_, place), stage in zip(stops, STAGES, strict=True):
        assert (ROOT / place).exists(), place
        assert Path(place).name.removesuffix(".py") == stage


def test_every_exit_code_is_explained() -> None:
    table = README.partition("| exit code | means |")[2].partition("\n\n")[0]
    assert [int(code) for code in re.findall(r"^\| (\d+) \|", table, re.MULTILINE)] == list(Exit)


def test_every_blame_is_explained_with_causes_that_exist() -> None:
    table = README.partition("| verdict | blame |")[2].partition("\n\n")[0]
    rows = re.findall(r"^\| (\w+) \| (\w+) \| (.*?) \|", table, re.MULTILINE)
    assert {blame for _, blame, _ in rows} == set(Blame) - {Blame.NONE}
    for cause in re.findall(r"`(\w+)`", table.replace("`limits.max_tries`", "")):
        assert cause in set(Cause), cause


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_and_named_files_lead_somewhere(page: Path) -> None:
    text = page.read_text("utf-8")
    for target in re.findall(r"\]\(([^)#]+)\)", text):
        assert target.startswith("https://") or (page.parent / target).exists(), target
    for place in re.findall(r"`((?:scheduler|workers|manifests|deploy|docs)/[\w./-]*)`", text):
        assert (ROOT / place).exists(), place
