"""The walk of an attempt, as the first lines of its files tell it."""

from __future__ import annotations

import ast
import itertools
import re
from pathlib import Path

from tests.layout.tree import ROOT, first_line, modules, parsed

STAGE = re.compile(r"Stage (\d), ([a-z]+): (\S+) -> (\S+)\.")
PHASE = re.compile(r"Phase (\d), ([a-z]+): (.+)\.")
STAGES = ["manifest", "plan", "queue", "dispatch", "node", "trial", "commit", "report"]
PHASES = ["prepare", "provision", "launch", "drive", "freeze", "collect", "verify", "seal"]

SAME_THING = {("Plan", "Attempt"), ("Lease", "TrialEnd")}
"""What a stage gives and the next takes under another name: a plan is its attempts."""


def walk() -> list[tuple[int, str, str, str]]:
    """(number, name, takes, gives) of every stage in order."""
    found = [match for module in modules() if (match := STAGE.match(first_line(module)))]
    return sorted((int(m[1]), m[2], m[3], m[4]) for m in found)


def test_the_stages_run_from_one_to_eight() -> None:
    assert [(number, name) for number, name, _, _ in walk()] == list(enumerate(STAGES, 1))


def test_each_stage_takes_what_the_one_before_gave() -> None:
    stages = walk()
    for (_, before, _, given), (_, name, taken, _) in itertools.pairwise(stages):
        same = given == taken or (given, taken) in SAME_THING
        assert same, f"{before} gives {given}, {name} takes {taken}"


def test_a_stage_is_the_file_or_folder_of_its_name() -> None:
    for module in modules():
        if match := STAGE.match(first_line(module)):
            assert match[2] in module.parts or match[2] == module.stem, module


def test_the_phases_of_a_trial_run_from_one_to_eight_and_all_are_called() -> None:
    found = [m for p in modules() if (m := PHASE.match(first_line(p)))]
    assert [(int(m[1]), m[2]) for m in sorted(found, key=lambda m: int(m[1]))] == list(
        enumerate(PHASES, 1)
    )
    tree = parsed(Path("workers/trial/run.py"))
    taken = {
        alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        and (node.module or "").startswith("workers.trial.")
        and (node.module or "").rpartition(".")[2] in PHASES
        for alias in node.names
    }
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    assert set(PHASES) <= taken & used


def test_the_map_of_each_package_names_what_is_there() -> None:
    for package in ("scheduler", "workers"):
        text = (ROOT / package / "__init__.py").read_text("utf-8")
        for name in re.findall(r"``(?:workers\.)?([a-z_]+)``", text):
            places = [ROOT / package / name, ROOT / "workers" / name]
            there = any(place.is_dir() or Path(f"{place}.py").is_file() for place in places)
            assert there, f"{package}/__init__.py names {name}"
