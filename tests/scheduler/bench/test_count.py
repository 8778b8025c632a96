from __future__ import annotations

from pathlib import Path

import pytest

from scheduler.bench.count import Left, tally_of
from tests.scheduler.report.builders import record
from workers.contract.outcome import Cause
from workers.contract.result import TryRecord, result_key, try_prefix

SWEEP = "s"


class Sweep:
    """Objects as the S3 server keeps them: a line of marks, then the bytes."""

    def __init__(self, root: Path) -> None:
        self.root = root / "sweeps" / SWEEP
        self._objects = root

    def write(self, key: str, body: bytes) -> None:
        path = self._objects / key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"{}\n" + body)

    def end(self, attempt: str, cause: Cause = Cause.NONE, *files: str, lacking: str = "") -> str:
        """One try that ended and, if it gave a verdict, its commit; gives the commit's key."""
        made = record(cause, attempt, 1, sweep=SWEEP, files=dict.fromkeys(files, "0" * 64))
        prefix = try_prefix(SWEEP, attempt, made.try_)
        for name in set(files) - {lacking}:
            self.write(f"{prefix}/{name}", b"x")
        invalid = made.verdict == "invalid"
        key = f"{prefix}/try.json" if invalid else result_key(SWEEP, attempt)
        self.write(key, made.to_json().encode())
        return key

    def told(self, made: str, try_: str | None = None) -> dict[str, str]:
        """The event of a try that ended with a pass."""
        body = (self.root / "attempts" / made[:2] / made / "result.json").read_bytes()
        found = TryRecord.from_json(body.partition(b"\n")[2], made)
        return {"attempt": made, "try": try_ or found.try_, "verdict": "pass"}


@pytest.fixture
def sweep(tmp_path: Path) -> Sweep:
    return Sweep(tmp_path)


def test_a_sweep_as_it_should_be(sweep: Sweep) -> None:
    keys = [sweep.end("aa01", Cause.NONE, "evidence.json"), sweep.end("bb02")]
    told = [sweep.told("aa01"), sweep.told("bb02")]
    tally = tally_of(sweep.root, frozenset({"aa01", "bb02"}), keys, told)
    assert tally.committed == tally.planned
    assert not tally.lost | tally.twice | tally.misjudged


def test_what_has_no_result_is_lost_and_its_tries_are_told(sweep: Sweep) -> None:
    sweep.end("aa01", Cause.NODE_LOST)
    told = {"attempt": "aa01", "try": "1-1", "verdict": "invalid"}
    tally = tally_of(sweep.root, frozenset({"aa01"}), [], [told])
    assert tally.lost == {"aa01"}
    assert tally.causes == {"node_lost": 1}


def test_a_result_that_was_told_of_and_is_not_there_is_lost(sweep: Sweep) -> None:
    told = {"attempt": "aa01", "try": "1-1", "verdict": "pass"}
    assert tally_of(sweep.root, frozenset(), [], [told]).lost == {"aa01"}


def test_a_result_without_a_file_of_its_evidence_is_lost(sweep: Sweep) -> None:
    key = sweep.end("aa01", Cause.NONE, "evidence.json", "usage.jsonl", lacking="usage.jsonl")
    assert tally_of(sweep.root, frozenset({"aa01"}), [key], []).lost == {"aa01"}


def test_a_result_that_was_written_over_counts_twice(sweep: Sweep) -> None:
    key = sweep.end("aa01")
    assert tally_of(sweep.root, frozenset({"aa01"}), [key, key], []).twice == {"aa01"}


def test_a_result_that_was_told_of_under_another_try_counts_twice(sweep: Sweep) -> None:
    key = sweep.end("aa01")
    both = [sweep.told("aa01"), sweep.told("aa01", "9-9")]
    assert tally_of(sweep.root, frozenset({"aa01"}), [key], both).twice == {"aa01"}


def test_a_fail_of_a_model_that_does_everything_right_is_misjudged(sweep: Sweep) -> None:
    key = sweep.end("aa01", Cause.WRONG)
    assert tally_of(sweep.root, frozenset({"aa01"}), [key], []).misjudged == {"aa01"}


def test_everything_left_is_counted() -> None:
    assert Left().count == 0
    assert Left(containers=("a", "b"), folders=("c",)).count == 3
