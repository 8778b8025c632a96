"""A slow, obvious queue: one list of rows, every question answered by looking at all of them.

Its breakers are obvious too: lists of what happened, counted anew for every question.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from workers.contract.outcome import BLAME_OF, Blame, Cause, Verdict
from workers.contract.spec import Limits

ONCE = (Blame.TASK, Blame.UNCLASSIFIED)


@dataclass
class Row:
    """One attempt."""

    attempt: str
    cell: str
    condition: str
    endpoints: tuple[str, ...]
    state: str = "planned"
    tries: int = 0
    once: int = 0
    earlier: int = 0
    """Of ``tries``: under earlier drivers."""
    counted: list[str] = field(default_factory=list)
    """The invalid tries that this driver or an earlier one has counted."""
    not_before: float = 0.0
    node: str = ""
    try_: str = ""
    blameless_loss: bool = False
    """Its lease was lost together with another one of its cell's, which counts for both."""

    @property
    def open(self) -> bool:
        return self.state in ("planned", "leased", "running", "lost")


@dataclass
class TwinBreaker:
    """Open since when, due when, and for which try it waits."""

    opened_at: float | None = None
    due_at: float = 0.0
    probe: str = ""
    """The probe's attempt; empty: none is out."""

    def due(self, now: float) -> bool:
        return self.opened_at is not None and not self.probe and now >= self.due_at


class TwinQueue:
    """The rules of the queue written down once more, without regard to cost."""

    def __init__(self, limits: Limits, grace_s: float) -> None:
        self.limits = limits
        self.lease_s = limits.lease_term_s + grace_s
        self.rows: list[Row] = []
        self.fruitless: dict[str, list[str]] = {}
        """Cell to the nodes of its tries without a verdict since the last one."""
        self.poisoned: set[str] = set()
        self.renewed: dict[str, float] = {}
        self.nodes: dict[str, TwinBreaker] = {}
        self.node_failures: dict[str, list[tuple[float, str]]] = {}
        self.endpoints: dict[str, TwinBreaker] = {}
        self.endpoint_log: dict[str, list[str]] = {}
        """Endpoint to ``failed`` and ``answered`` in their order."""

    # Looking

    def row(self, attempt: str) -> Row:
        (found,) = (row for row in self.rows if row.attempt == attempt)
        return found

    def knows(self, attempt: str) -> bool:
        return any(row.attempt == attempt for row in self.rows)

    def held(self, node: str) -> list[Row]:
        return [row for row in self.rows if row.node == node and row.state in ("leased", "running")]

    def down(self, row: Row) -> list[str]:
        return [name for name in row.endpoints if self.endpoints[name].opened_at is not None]

    def due(self, now: float) -> list[Row]:
        return [row for row in self.rows if row.state == "planned" and row.not_before <= now]

    def leasable(self, now: float) -> list[Row]:
        """What any sound node may be given, probes aside."""
        return [row for row in self.due(now) if not self.down(row)]

    def probeable(self, now: float) -> list[Row]:
        """What may be given as a probe of all the endpoints that are down for it."""
        return [
            row
            for row in self.due(now)
            if self.down(row) and all(self.endpoints[name].due(now) for name in self.down(row))
        ]

    def node_open(self, node: str) -> bool:
        return node in self.nodes and self.nodes[node].opened_at is not None

    def overdue(self, now: float) -> dict[str, list[Row]]:
        return {
            node: self.held(node)
            for node, renewed in self.renewed.items()
            if now - renewed > self.lease_s and self.held(node)
        }

    def settled(self) -> bool:
        return not any(row.open for row in self.rows)

    def waiting(self) -> dict[str, float]:
        """The endpoints that are down, if all that is open waits for them and nothing else."""
        rows = [row for row in self.rows if row.open]
        if not rows or not all(row.state == "planned" and self.down(row) for row in rows):
            return {}
        names = {name for row in rows for name in self.down(row)}
        return {name: self.endpoints[name].opened_at or 0.0 for name in names}

    # Moves

    def enqueue(
        self, attempt: str, cell: str, condition: str, endpoints: tuple[str, ...], row: Row | None
    ) -> None:
        """``row`` brings the tries under earlier drivers."""
        if self.knows(attempt):
            return
        made = Row(attempt, cell, condition, endpoints)
        if row is not None:
            made.tries, made.once, made.counted = row.tries, row.once, list(row.counted)
            made.earlier = row.tries
        for name in endpoints:
            self.endpoints.setdefault(name, TwinBreaker())
            self.endpoint_log.setdefault(name, [])
        if cell in self.poisoned or self.spent(made):
            made.state = "dead"
        self.rows.append(made)

    def spent(self, row: Row) -> bool:
        return row.tries >= self.limits.max_tries or row.once >= 2

    def give(self, attempt: str, node: str, try_: str, now: float, probe: bool) -> None:
        row = self.row(attempt)
        assert row.state == "planned"
        assert row.not_before <= now
        assert probe == bool(self.down(row))
        for name in self.down(row):
            assert self.endpoints[name].due(now)
            self.endpoints[name].probe = attempt
        if self.node_open(node):
            assert self.nodes[node].due(now)
            self.nodes[node].probe = attempt
        row.state, row.node, row.try_ = "leased", node, try_

    def renew(self, node: str, now: float) -> None:
        self.renewed[node] = now
        self.nodes.setdefault(node, TwinBreaker())
        self.node_failures.setdefault(node, [])

    def started(self, node: str) -> None:
        for row in self.held(node):
            row.state = "running"

    def adopt(self, node: str, tries: dict[str, str], now: float) -> list[str]:
        taken = []
        for attempt, try_ in tries.items():
            if not self.knows(attempt):
                continue
            row = self.row(attempt)
            if row.state == "planned" and row.try_ != try_:
                row.state, row.node, row.try_ = "running", node, try_
                taken.append(attempt)
        if taken:
            self.renew(node, now)
        return taken

    def ended(
        self, attempt: str, try_: str, cause: Cause, endpoint: str | None, probe: bool, now: float
    ) -> bool:
        blame = BLAME_OF[cause]
        row = self.row(attempt)
        if blame in (Blame.NONE, Blame.MODEL):
            if row.try_ != try_:
                self.release_probes(row)
            return self.committed(attempt)
        if row.try_ != try_ or row.state not in ("leased", "running", "lost"):
            return False
        culprit = None
        if blame is Blame.PROVIDER:
            if endpoint in row.endpoints:
                culprit = endpoint
            elif endpoint is None and len(row.endpoints) == 1:
                culprit = row.endpoints[0]
        spends = not (probe and blame is Blame.PROVIDER)
        self.invalid(row, blame, now, spends=spends, poisons=culprit is None)
        if culprit is not None:
            self.endpoint_failed(culprit, now)
        elif blame is Blame.HARNESS and row.node in self.renewed:
            self.node_failed(row.node, row.cell, now)
        return True

    def committed(self, attempt: str) -> bool:
        row = self.row(attempt)
        if row.state == "committed":
            return False
        row.state = "committed"
        self.fruitless[row.cell] = []
        for name in row.endpoints:
            self.endpoint_log[name].append("answered")
        for name, breaker in self.endpoints.items():
            if breaker.probe == attempt:
                self.close_endpoint(name)
        for node, breaker in self.nodes.items():
            if breaker.probe == attempt:
                self.nodes[node] = TwinBreaker()
                self.node_failures[node] = []
        return True

    def given_back(self, attempt: str, try_: str) -> bool:
        row = self.row(attempt)
        if row.try_ != try_ or row.state != "leased":
            return False
        self.release_probes(row)
        row.state = "dead" if row.cell in self.poisoned else "planned"
        row.not_before = 0.0
        return True

    def release_probes(self, row: Row) -> None:
        for breaker in (*self.endpoints.values(), *self.nodes.values()):
            if breaker.probe == row.attempt:
                breaker.probe = ""

    def lose(self, rows: list[Row]) -> None:
        cells: set[str] = set()
        for row in rows:
            row.state = "lost"
            row.blameless_loss = row.cell in cells
            cells.add(row.cell)

    def node_lost(self, node: str) -> None:
        for known in (self.renewed, self.nodes, self.node_failures):
            known.pop(node, None)

    def release(self, attempt: str, try_: str, now: float) -> bool:
        row = self.row(attempt)
        if row.state != "lost" or row.try_ != try_:
            return False
        self.invalid(row, Blame.HARNESS, now)
        return True

    def invalid(
        self, row: Row, blame: Blame, now: float, *, spends: bool = True, poisons: bool = True
    ) -> None:
        row.counted.append(row.try_)
        for breaker in self.endpoints.values():
            if breaker.probe == row.attempt:
                breaker.probe, breaker.due_at = "", now + self.limits.endpoint_probe_s
        for breaker in self.nodes.values():
            if breaker.probe == row.attempt:
                breaker.probe, breaker.due_at = "", now + self.limits.node_probe_s
        blameless, row.blameless_loss = row.blameless_loss, False
        if blame is Blame.OPERATOR:
            row.state = "parked"
        else:
            row.tries += spends
            row.once += blame in ONCE
            if poisons and not blameless:
                self.fruitless.setdefault(row.cell, []).append(row.node)
            if self.spent(row) or row.cell in self.poisoned:
                row.state = "dead"
            else:
                row.state = "planned"
                first = {Blame.PROVIDER: 5.0, Blame.HARNESS: 1.0}.get(blame, 0.0)
                row.not_before = now + min(60.0, first * 2 ** max(0, row.tries - 1))
        self.poison(row.cell, row.node, now)

    def poison(self, cell: str, node: str, now: float) -> None:
        nodes = self.fruitless.get(cell, [])
        if len(nodes) < self.limits.poison:
            return
        others = [
            name
            for name, renewed in self.renewed.items()
            if name != node and now - renewed <= self.lease_s and not self.node_open(name)
        ]
        if others and len(set(nodes)) == 1:
            return
        self.poisoned.add(cell)
        for row in self.rows:
            if row.cell == cell and row.state == "planned":
                row.state = "dead"

    # Breakers

    def node_failed(self, node: str, cell: str, now: float) -> None:
        self.node_failures[node].append((now, cell))
        recent = [c for at, c in self.node_failures[node] if now - at <= self.limits.node_breaker_s]
        counting = sum(min(2, recent.count(each)) for each in set(recent))
        conditions = {row.condition for row in self.rows if row.cell in recent}
        left = {row.condition for row in self.rows if row.open}
        enough = len(conditions) > 1 or left <= conditions
        if not self.node_open(node) and counting >= self.limits.node_breaker and enough:
            self.nodes[node] = TwinBreaker(now, now + self.limits.node_probe_s)

    def endpoint_failed(self, name: str, now: float) -> None:
        self.endpoint_log[name].append("failed")
        streak = 0
        for word in reversed(self.endpoint_log[name]):
            if word != "failed":
                break
            streak += 1
        if streak >= self.limits.endpoint_breaker:
            self.open_endpoint(name, now)

    def open_endpoint(self, name: str, now: float) -> bool:
        if name not in self.endpoints or self.endpoints[name].opened_at is not None:
            return False
        self.endpoints[name] = TwinBreaker(now, now + self.limits.endpoint_probe_s)
        return True

    def close_endpoint(self, name: str) -> bool:
        if name not in self.endpoints or self.endpoints[name].opened_at is None:
            return False
        self.endpoints[name] = TwinBreaker()
        self.endpoint_log[name].append("answered")
        return True


def verdict_of(cause: Cause) -> Verdict:
    """The verdict that a cause implies."""
    return {Blame.NONE: Verdict.PASS, Blame.MODEL: Verdict.FAIL}.get(
        BLAME_OF[cause], Verdict.INVALID
    )
