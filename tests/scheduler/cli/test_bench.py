from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest

from scheduler.bench.chaos import ChaosResult
from scheduler.bench.count import Left, Tally
from scheduler.bench.figure import Figure
from scheduler.cli import run_cli
from scheduler.cli.bench.chaos import chaos_figures, complaints
from scheduler.cli.bench.showing import show_figures
from scheduler.cli.exits import Exit
from tests.scheduler.cli.builders import World

BOTH = frozenset({"a", "b"})
CLEAN: dict[str, Any] = {
    "planned": BOTH,
    "committed": BOTH,
    "twice": frozenset(),
    "vanished": frozenset(),
    "incomplete": frozenset(),
    "misjudged": frozenset(),
    "causes": Counter({"node_lost": 3}),
}


def result(tally: dict[str, Any] | None = None, **changes: Any) -> ChaosResult:
    facts: dict[str, Any] = {
        "sweep": "chaos",
        "seed": 7,
        "seconds": 61.2,
        "commands": 3,
        "faults": Counter({"node killed": 2, "store killed": 1}),
        "tally": Tally(**{**CLEAN, **(tally or {})}),
        "left": Left(),
        "settled": True,
        "bugs": (),
    }
    return ChaosResult(**{**facts, **changes})


def value(made: ChaosResult, name: str) -> float:
    return next(each.value for each in chaos_figures(made) if each.name == name)


def test_a_promise_that_was_kept() -> None:
    made = result()
    assert made.is_clean
    assert complaints(made) == []
    assert [value(made, name) for name in ("planned", "committed", "faults")] == [2, 2, 3]
    assert value(made, "fault: node killed") == 2
    assert value(made, "tries: node_lost") == 3
    (committed,) = (each for each in chaos_figures(made) if each.name == "committed")
    assert committed.ratio == 1.0


@pytest.mark.parametrize(
    ("changes", "name", "told"),
    [
        ({"tally": {"committed": frozenset("a")}}, "lost", "lost: b"),
        ({"tally": {"incomplete": frozenset("a")}}, "lost", "lost: a"),
        ({"tally": {"twice": frozenset("a")}}, "counted twice", "counted twice: a"),
        ({"tally": {"misjudged": frozenset("a")}}, "misjudged", "failed, though"),
        ({"left": Left(containers=("c",))}, "left over", "left over: c"),
        ({"bugs": ("apiary resume ended with 1",)}, "bugs", "apiary resume ended with 1"),
    ],
)
def test_a_promise_that_was_not_kept_is_told(changes: dict[str, Any], name: str, told: str) -> None:
    made = result(**changes)
    assert not made.is_clean
    assert value(made, name) == 1
    assert any(line.startswith(told) for line in complaints(made))


def test_a_sweep_that_was_not_done_in_time_is_not_clean() -> None:
    made = result(settled=False)
    assert not made.is_clean
    assert complaints(made) == ["the sweep was not settled when its time was over"]


def test_a_wrong_time_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_cli(["bench", "chaos", "--minutes", "0"]) == Exit.USAGE
    assert "--minutes" in capsys.readouterr().err


def test_a_peer_that_is_not_here_is_asked_for_before_anything_runs(
    world: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("APIARY_BASE_IMAGE", "nosuch:image")
    arguments = ["bench", "docker", "--peer", "harbor", "--peer-program", "nosuch"]
    assert run_cli(arguments) == Exit.INFRASTRUCTURE
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "pip install harbor" in shown.err


def test_figures_are_a_table_for_people_and_lines_for_machines(
    capsys: pytest.CaptureFixture[str],
) -> None:
    figures = [
        Figure.by_turns("rate", [2.0, 4.0], [1.0, 1.0], "trials/s", "the other"),
        Figure.one("seed", 7),
    ]
    show_figures(figures, as_json=False)
    head, rate, seed = capsys.readouterr().out.splitlines()
    assert head.split() == ["figure", "value", "spread", "n", "reference", "ratio", "against"]
    assert rate.split() == ["rate", "3", "trials/s", "2–4", "2", "1", "3", "(2–4)", "the", "other"]
    assert seed.split() == ["seed", "7", "1"]
    show_figures(figures, as_json=True)
    told = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [each["name"] for each in told] == ["rate", "seed"]
    assert (told[0]["low"], told[0]["high"], told[0]["n"]) == (2.0, 4.0, 2)
