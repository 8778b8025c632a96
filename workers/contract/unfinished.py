"""The record of a try that no trial could write: it was lost, or the harness itself broke."""

from __future__ import annotations

from workers.contract.outcome import Outcome
from workers.contract.result import Digests, TryRecord
from workers.contract.spec import CellSpec, Epoch


def unfinished_record(
    outcome: Outcome,
    *,
    sweep: str,
    cell: CellSpec,
    attempt: str,
    index: int,
    epoch: Epoch,
    node: str,
    started_at: str,
    ended_at: str,
    traceback: str | None = None,
) -> TryRecord:
    """A record with the outcome and nothing measured.

    Args:
        outcome: what is known of the end.
        sweep: the sweep's id.
        cell: the attempt's cell.
        attempt: the attempt's id.
        index: which of the cell's attempts.
        epoch: of the lease.
        node: that held the lease.
        started_at: RFC 3339, UTC; when the lease was given or received.
        ended_at: RFC 3339, UTC.
        traceback: of an unclassified fault only.
    """
    return TryRecord.model_validate(
        {
            "sweep": sweep,
            "attempt": attempt,
            "index": index,
            "try": str(epoch),
            "cell": cell.cell,
            "condition": cell.condition.condition,
            "task": cell.task.name,
            "layer": cell.task.layer,
            "verdict": outcome.verdict,
            "blame": outcome.blame,
            "phase": outcome.phase,
            "cause": outcome.cause,
            "detail": outcome.detail,
            "evidence_refs": outcome.evidence_refs,
            "started_at": started_at,
            "ended_at": ended_at,
            "node": node,
            "epoch": (epoch.generation, epoch.counter),
            "digests": Digests(task=cell.task.digest, condition=cell.condition.digest),
            "traceback": traceback,
        }
    )
