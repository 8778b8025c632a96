"""What a sweep left behind, cell by cell: the input of scoring."""

from __future__ import annotations

from dataclasses import dataclass

from scheduler.retry import may_try, spent_by
from workers.contract.outcome import Verdict
from workers.contract.result import TryRecord
from workers.contract.spec import CanaryKind


@dataclass(frozen=True)
class AttemptResults:
    """One attempt of a cell."""

    attempt: str
    index: int
    result: TryRecord | None
    """The committed try; null while there is none, or if no try ever counted."""
    tries: tuple[TryRecord, ...]
    """Every try that ended, in the order of their epochs."""
    max_tries: int
    """Tries of one attempt, the first included."""
    fresh_from: int = 0
    """The driver generation for which the operator asked for fresh tries last; 0: never."""

    @property
    def passed(self) -> bool:
        """Whether the attempt is settled as a pass."""
        return self.result is not None and self.result.verdict is Verdict.PASS

    @property
    def open(self) -> bool:
        """Whether ``resume`` would go on with it: it has no result, and its tries are not spent."""
        spent = spent_by(self.tries, self.fresh_from)
        return self.result is None and may_try(spent, self.max_tries)

    @property
    def last(self) -> TryRecord | None:
        """The record that says how the attempt stands: its result, else its last try."""
        return self.result or (self.tries[-1] if self.tries else None)


@dataclass(frozen=True)
class CellResults:
    """One task under one condition, with every attempt that the locks plan."""

    cell: str
    condition: str
    """The condition's name."""
    condition_digest: str
    task: str
    """The task's whole name."""
    layer: str
    attempts: tuple[AttemptResults, ...]
    task_digest: str = ""
    canary: CanaryKind | None = None
    """Of a canary: it is reported apart and counts in no score."""


@dataclass(frozen=True)
class SweepResults:
    """A sweep's cells in the order of its locks."""

    sweep: str
    rule: str
    """What a missing attempt counts as in the headline."""
    coverage_gate: float
    cells: tuple[CellResults, ...]
    superseded: tuple[CellResults, ...] = ()
    """Cells of earlier locks whose task or condition has changed since; they count nowhere."""

    @property
    def settled(self) -> int:
        """Attempts with a result."""
        return sum(a.result is not None for cell in self.cells for a in cell.attempts)

    @property
    def planned(self) -> int:
        """All attempts of all locks."""
        return sum(len(cell.attempts) for cell in self.cells)
