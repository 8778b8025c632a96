"""Results of small sweeps, written as one letter an attempt."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scheduler.report.results import AttemptResults, CellResults, SweepResults
from workers.contract.base import sha256_hex
from workers.contract.outcome import Cause, Phase, outcome_of
from workers.contract.result import Digests, TryRecord

SWEEP = "demo-20260101T000000Z"
MAX_TRIES = 3
CAUSES = {
    "p": Cause.NONE,
    "f": Cause.WRONG,
    "i": Cause.CONTAINER_LOST,
    "r": Cause.RATE_LIMITED,
    "c": Cause.CANCELLED,
}
"""Letter of a try to its cause."""


def record(cause: Cause, attempt: str, number: int, **changes: Any) -> TryRecord:
    """How a try ended."""
    outcome = outcome_of(cause, Phase.SEAL)
    values: dict[str, Any] = {
        "sweep": SWEEP,
        "attempt": attempt,
        "index": 0,
        "try": f"1-{number}",
        "cell": "cell",
        "condition": "solver",
        "task": "buzz-native/greet",
        "layer": "workflow",
        "verdict": outcome.verdict,
        "blame": outcome.blame,
        "phase": outcome.phase,
        "cause": outcome.cause,
        "reward": {"pass": 1.0, "fail": 0.0}.get(outcome.verdict),
        "started_at": "2026-01-01T00:00:00.000Z",
        "ended_at": "2026-01-01T00:00:01.000Z",
        "phase_seconds": {"drive": 1.0, "verify": 0.5},
        "node": "n1",
        "epoch": (1, number),
        "digests": Digests(task="t" * 64, condition="c" * 64),
    }
    return TryRecord.model_validate({**values, **changes})


def attempt(tries: str, index: int = 0, *, home: str = "cell", **changes: Any) -> AttemptResults:
    """An attempt by its tries in order: ``iip`` is a pass after two lost containers.

    A last try that is a pass or a fail is the attempt's result; an empty text is an attempt
    that was not tried.
    """
    name = sha256_hex(f"{home}/{index}".encode())[:32]
    records = tuple(
        record(CAUSES[letter], name, number, index=index, **changes)
        for number, letter in enumerate(tries, 1)
    )
    result = records[-1] if tries[-1:] in ("p", "f") else None
    return AttemptResults(
        attempt=name, index=index, result=result, tries=records, max_tries=MAX_TRIES
    )


def cell(
    attempts: str,
    *,
    condition: str = "solver",
    task: str = "greet",
    layer: str = "workflow",
    **changes: Any,
) -> CellResults:
    """A cell by its attempts, parted by spaces; ``-`` is one that was not tried."""
    home = f"{condition}/{task}"
    return CellResults(
        cell=home,
        condition=condition,
        condition_digest=sha256_hex(condition.encode()),
        task=f"buzz-native/{task}",
        layer=layer,
        attempts=tuple(
            attempt(
                tries.strip("-"),
                index,
                home=home,
                condition=condition,
                task=f"buzz-native/{task}",
                **changes,
            )
            for index, tries in enumerate(attempts.split())
        ),
    )


def results(*cells: CellResults, rule: str = "strict", gate: float = 0.9) -> SweepResults:
    """A sweep of these cells."""
    return SweepResults(sweep=SWEEP, rule=rule, coverage_gate=gate, cells=cells)


def sweep_of(cells: Mapping[str, str], **options: Any) -> SweepResults:
    """A sweep of one condition: task to the attempts of its cell."""
    return results(*(cell(tries, task=task) for task, tries in cells.items()), **options)
