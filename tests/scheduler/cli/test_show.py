from __future__ import annotations

import json

import pytest

from scheduler.cli import run_cli
from scheduler.cli.exits import Exit
from tests.scheduler.cli.builders import FakeDriver, World, record_of, write_try
from tests.scheduler.report.evidence import conversation
from workers.contract.outcome import Cause
from workers.contract.result import TokenDifference, Tokens


@pytest.fixture
def attempt(world: World, driver: FakeDriver, capsys: pytest.CaptureFixture[str]) -> str:
    """An attempt with a lost try and one that failed, of which the evidence is kept."""
    driver.outcomes = lambda _: ()
    run_cli(["run", str(world.sweep)])
    plan = driver.calls[0]["plan"]
    name: str = plan.attempts[0].attempt
    write_try(world.store, record_of(plan, name, Cause.CONTAINER_LOST, 1))
    failed = record_of(
        plan,
        name,
        Cause.WRONG,
        2,
        dimensions={"answer_correct": 1.0, "reply_to_thread": 0.0},
        usage={"calls": 3, "input_tokens": 120, "output_tokens": 30, "cost_usd": 0.0125},
        token_differences=(
            TokenDifference(
                agent="solo-1",
                log=Tokens(calls=2, input_tokens=80, output_tokens=30),
                ledger=Tokens(calls=3, input_tokens=120, output_tokens=30),
            ),
        ),
    )
    write_try(world.store, failed, conversation())
    capsys.readouterr()
    return name


def test_it_reads_like_a_conversation(attempt: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_cli(["show", attempt[:8]]) == Exit.DONE
    shown = capsys.readouterr().out
    for expected in (
        "alpha × one #0  fail  model: wrong",
        "try 1-2 (counts) on n1",
        "3 model calls (0 failed), 120 tokens in (0 cached), 30 out (0 reasoning), $0.0125",
        "solo-1: its log counts 2 calls, 80 tokens in (0 cached), 30 out; "
        "the ledger 3, 120 (0), 30",
        "Ada Lovelace  user, 00:00:01  notifies @solo-1  [task]\nWhat is 2 + 2?",
        "    ↳ solo-1  orchestrator, 00:00:05  notifies @Ada Lovelace  [completion]\n    It is 4.",
        "✗ reply_to_thread 0\n✓ answer_correct 1",
        "drive         1.00 s",
        "  1-1  invalid, container_lost\n→ 1-2  fail, wrong",
        "  evidence.json\n  try.json",
    ):
        assert expected in "\n".join(line.rstrip() for line in shown.splitlines())


def test_another_try_can_be_looked_at(attempt: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_cli(["show", attempt, "--try", "1-1"]) == Exit.DONE
    shown = capsys.readouterr().out
    assert "invalid  harness: container_lost" in shown
    assert "try 1-1 (does not count)" in shown
    assert "no evidence was taken" in shown


def test_a_try_that_is_not_there_is_refused(
    attempt: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_cli(["show", attempt, "--try", "9-9"]) == Exit.USAGE
    assert "it has 1-1, 1-2" in capsys.readouterr().err


def test_json_has_everything(attempt: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_cli(["show", attempt, "--json"]) == Exit.DONE
    shown = json.loads(capsys.readouterr().out)
    assert shown["try"] == "1-2"
    assert shown["result"]["cause"] == "wrong"
    assert list(shown["tries"]) == ["1-1", "1-2"]
    assert shown["evidence"]["messages"][1]["content"] == "It is 4.\n"
    assert shown["files"]["1-2"] == ["evidence.json", "try.json"]
