"""A slow, obvious queue: one list of rows, every question answered by looking at all of them."""

from __future__ import annotations

from dataclasses import dataclass

from workers.contract.outcome import BLAME_OF, Blame, Cause, Verdict

ONCE = (Blame.TASK, Blame.UNCLASSIFIED)


@dataclass
class Row:
    """One attempt."""

    attempt: str
    cell: str
    condition: str
    state: str = "planned"
    tries: int = 0
    once: int = 0
    earlier_tries: int = 0
    not_before: float = 0.0
    node: str = ""
    try_: str = ""
    given_at: float = 0.0
    blameless_loss: bool = False
    """Its lease was lost together with another one of its cell's, which counts for both."""


class TwinQueue:
    """The rules of the queue written down once more, without regard to cost."""

    def __init__(self, max_tries: int, poison: int, lease_s: float) -> None:
        self.max_tries = max_tries
        self.poison = poison
        self.lease_s = lease_s
        """Term and grace."""
        self.rows: list[Row] = []
        self.invalid_in_a_row: dict[str, int] = {}
        self.poisoned: set[str] = set()
        self.renewed: dict[str, float] = {}

    def row(self, attempt: str) -> Row:
        (found,) = (row for row in self.rows if row.attempt == attempt)
        return found

    def knows(self, attempt: str) -> bool:
        return any(row.attempt == attempt for row in self.rows)

    def enqueue(self, attempt: str, cell: str, condition: str, tries: int, once: int) -> None:
        if self.knows(attempt):
            return
        row = Row(attempt, cell, condition, tries=tries, once=once, earlier_tries=tries)
        if cell in self.poisoned or tries >= self.max_tries or once >= 2:
            row.state = "dead"
        self.rows.append(row)

    def leasable(self, now: float) -> list[Row]:
        return [row for row in self.rows if row.state == "planned" and row.not_before <= now]

    def give(self, attempt: str, node: str, try_: str, now: float) -> None:
        row = self.row(attempt)
        assert row.state == "planned"
        assert row.not_before <= now
        row.state, row.node, row.try_, row.given_at = "leased", node, try_, now

    def renew(self, node: str, now: float) -> None:
        self.renewed[node] = now

    def held(self, node: str) -> list[Row]:
        return [row for row in self.rows if row.node == node and row.state in ("leased", "running")]

    def started(self, node: str) -> None:
        for row in self.held(node):
            row.state = "running"

    def ended(self, attempt: str, try_: str, cause: Cause, now: float) -> bool:
        blame = BLAME_OF[cause]
        if blame in (Blame.NONE, Blame.MODEL):
            return self.committed(attempt)
        row = self.row(attempt)
        if row.try_ != try_ or row.state not in ("leased", "running", "lost"):
            return False
        self.invalid(row, blame, now)
        return True

    def committed(self, attempt: str) -> bool:
        row = self.row(attempt)
        if row.state == "committed":
            return False
        row.state = "committed"
        self.invalid_in_a_row[row.cell] = 0
        return True

    def given_back(self, attempt: str, try_: str) -> bool:
        row = self.row(attempt)
        if row.try_ != try_ or row.state != "leased":
            return False
        row.state = "dead" if row.cell in self.poisoned else "planned"
        row.not_before = 0.0
        return True

    def lose(self, rows: list[Row]) -> None:
        cells: set[str] = set()
        for row in rows:
            row.state = "lost"
            row.blameless_loss = row.cell in cells
            cells.add(row.cell)

    def overdue(self, now: float) -> dict[str, list[Row]]:
        return {
            node: self.held(node)
            for node, renewed in self.renewed.items()
            if now - renewed > self.lease_s and self.held(node)
        }

    def release(self, attempt: str, try_: str, now: float) -> bool:
        row = self.row(attempt)
        if row.state != "lost" or row.try_ != try_:
            return False
        self.invalid(row, Blame.HARNESS, now)
        return True

    def invalid(self, row: Row, blame: Blame, now: float) -> None:
        if blame is Blame.OPERATOR:
            row.state = "parked"
            row.blameless_loss = False
            return
        row.tries += 1
        row.once += blame in ONCE
        if not row.blameless_loss:
            self.invalid_in_a_row[row.cell] = self.invalid_in_a_row.get(row.cell, 0) + 1
        row.blameless_loss = False
        if row.tries >= self.max_tries or row.once >= 2 or row.cell in self.poisoned:
            row.state = "dead"
        else:
            row.state = "planned"
            first = {Blame.PROVIDER: 5.0, Blame.HARNESS: 1.0}.get(blame, 0.0)
            row.not_before = now + min(60.0, first * 2 ** (row.tries - 1))
        if self.invalid_in_a_row.get(row.cell, 0) >= self.poison:
            self.poisoned.add(row.cell)
            for other in self.rows:
                if other.cell == row.cell and other.state == "planned":
                    other.state = "dead"

    def settled(self) -> bool:
        return all(row.state in ("committed", "dead", "parked") for row in self.rows)


def verdict_of(cause: Cause) -> Verdict:
    """The verdict that a cause implies."""
    return {Blame.NONE: Verdict.PASS, Blame.MODEL: Verdict.FAIL}.get(
        BLAME_OF[cause], Verdict.INVALID
    )
