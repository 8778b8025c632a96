"""The benches of relay, gateway, store and report at a small size."""

from __future__ import annotations

from pathlib import Path

import pytest

from scheduler.bench.figure import Figure
from scheduler.cli import run_cli
from scheduler.cli.exits import Exit

pytestmark = pytest.mark.long


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        (
            ["relay", "--messages", "30"],
            ["message, alone", "message, 30 at once", "message, 30 at once, CPU"],
        ),
        (
            ["gateway", "--requests", "20"],
            ["call, whole", "call, streamed", "call, added by the gateway", "calls, 16 at once"],
        ),
        (
            ["store", "--objects", "20"],
            [
                f"{act}, {kind}"
                for kind in ("files", "S3")
                for act in ("put", "create", "get", "listing")
            ],
        ),
        (["report", "--attempts", "100"], ["collect and score", "the same, and the page"]),
    ],
    ids=["relay", "gateway", "store", "report"],
)
def test_a_bench_prints_each_figure_with_its_reference_of_the_same_run(
    arguments: list[str],
    names: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(Path(__file__).parents[3])
    assert run_cli(["bench", *arguments, "--rounds", "2", "--json"]) == Exit.DONE
    lines = capsys.readouterr().out.splitlines()
    figures = [Figure.from_json(line, "figure") for line in lines]
    assert [each.name for each in figures] == names
    for each in figures:
        assert each.value > 0
        assert each.n >= 2
        if each.against:
            assert each.ratio is not None and each.ratio > 0
