"""Stage 3, queue: Attempt -> Lease.

A state machine without I/O: the time is given, the store is asked by others. It is rebuilt
from the store at every start, so nothing here outlives the driver.

Every operation costs the same however many attempts there are, except that poisoning a cell
visits the cell's attempts, once.

*Why one renewal time a node:* orders renew every lease that a node holds, so leases of a node
that has gone silent end together, and a heartbeat costs one assignment.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from scheduler.queue.attempts import Attempt, Cell, Condition, Counts, LostLease, NodeLeases
from scheduler.queue.fair_line import FairLine
from scheduler.queue.states import HELD, SETTLED, State, check_move
from scheduler.retry import UNSPENT, Next, Spent, after_invalid, delay_s, may_try
from workers.contract.outcome import RULES, Blame, Retry, Verdict
from workers.contract.result import TryRecord
from workers.contract.spec import Epoch, Lease, Limits

__all__ = ["Counts", "LostLease", "WorkQueue"]

AVOIDED_AT_MOST = 32
"""Attempts passed over in one call because another node is preferred for their next try."""


class WorkQueue:
    """The attempts of one sweep under one driver generation."""

    def __init__(self, generation: int, limits: Limits, grace_s: float | None = None) -> None:
        """Starts empty.

        Args:
            generation: of this driver; every epoch carries it.
            limits: of the sweep.
            grace_s: how much longer than the term a lease is honoured here, so that the node's
                clock always ends it first; by default a sixth of the term.
        """
        self._generation = generation
        self._limits = limits
        self._grace_s = limits.lease_term_s / 6 if grace_s is None else grace_s
        self._counter = 0
        self._attempts: dict[str, Attempt] = {}
        self._cells: dict[str, Cell] = {}
        self._conditions: dict[str, Condition] = {}
        self._nodes: dict[str, NodeLeases] = {}
        self._line = FairLine()
        self._unsettled = 0
        self.poisoned: list[str] = []
        """Cells that reached the poison limit, in that order."""

    # Putting in

    def enqueue(
        self, attempt: str, *, index: int, cell: str, condition: str, spent: Spent = UNSPENT
    ) -> None:
        """Plans an attempt; one whose tries are spent is dead at once.

        Args:
            attempt: its id; one that is known already is left as it is.
            index: which of the cell's attempts.
            cell: its cell.
            condition: the condition's name; leases go round over the conditions.
            spent: its invalid tries under earlier drivers.
        """
        if attempt in self._attempts:
            return
        group = self._conditions.setdefault(condition, Condition(condition))
        home = self._cells.setdefault(cell, Cell(cell, group))
        entry = Attempt(attempt, index, home, spent)
        self._attempts[attempt] = entry
        home.attempts.append(entry)
        group.counts.planned += 1
        group.counts.invalid_tries += spent.tries
        self._unsettled += 1
        if home.poisoned or not may_try(spent, self._limits.max_tries):
            self._move(entry, State.DEAD)
        else:
            self._line.push(entry)

    # To the nodes and back

    def lease(self, node: str, count: int, now: float) -> list[Lease]:
        """Leases up to ``count`` attempts to a node, the conditions in turn.

        An attempt whose last try was invalid goes to another node than before if another
        attempt can be leased instead. Giving leases renews the node's others.
        """
        holder = self._holder(node, now)
        leases: list[Lease] = []
        avoided: list[Attempt] = []
        prefers = len(self._nodes) > 1
        while len(leases) < count and (entry := self._line.pop(now)) is not None:
            if prefers and entry.node == node and len(avoided) < AVOIDED_AT_MOST:
                avoided.append(entry)
            else:
                leases.append(self._give(entry, node, holder))
        for entry in reversed(avoided):
            if len(leases) < count:
                leases.append(self._give(entry, node, holder))
            else:
                self._line.push(entry, first=True)
        return leases

    def started(self, node: str, attempts: Iterable[str]) -> None:
        """The node runs these attempts, as far as it still holds leases of them."""
        holder = self._nodes.get(node)
        if holder is None:
            return
        for attempt in attempts:
            entry = holder.held.get(attempt)
            if entry is not None and entry.state is State.LEASED:
                self._move(entry, State.RUNNING)

    def renew(self, node: str, now: float) -> None:
        """Orders have been sent to the node: its leases run from now."""
        self._holder(node, now)

    def ended(self, record: TryRecord, now: float) -> bool:
        """A try ended; a pass or a fail has been committed by its node.

        Returns:
            Whether this is news: False for a repeated report, and for an invalid try whose
            lease was already counted as lost.
        """
        if record.verdict is not Verdict.INVALID:
            return self.committed(record.attempt, record.verdict)
        entry = self._attempts.get(record.attempt)
        if entry is None or entry.try_ != record.try_ or not _open(entry):
            return False
        self._invalid(entry, record.blame, now)
        return True

    def committed(self, attempt: str, verdict: Verdict) -> bool:
        """The attempt's ``result.json`` exists, whoever wrote it: the first commit counts.

        Returns:
            Whether this is news.
        """
        entry = self._attempts.get(attempt)
        if entry is None or entry.state is State.COMMITTED:
            return False
        self._move(entry, State.COMMITTED)
        counts = entry.cell.condition.counts
        if verdict is Verdict.PASS:
            counts.passed += 1
        else:
            counts.failed += 1
        entry.cell.invalid_in_a_row = 0
        return True

    def given_back(self, attempt: str, epoch: Epoch) -> bool:
        """A node refused the lease: no try was made, the attempt is next in its line.

        Returns:
            Whether the lease was held.
        """
        entry = self._attempts.get(attempt)
        if entry is None or entry.epoch != epoch or entry.state is not State.LEASED:
            return False
        if entry.cell.poisoned:
            self._move(entry, State.DEAD)
        else:
            self._again(entry)
        return True

    # Losing leases

    def expire(self, now: float) -> list[LostLease]:
        """Ends the leases whose term and grace are over; ``release`` must follow for each."""
        term = self._limits.lease_term_s + self._grace_s
        lost: list[LostLease] = []
        for holder in self._nodes.values():
            if holder.held and now - holder.renewed_at > term:
                lost += self._lose(tuple(holder.held.values()))
        return lost

    def node_lost(self, node: str) -> list[LostLease]:
        """The node is dead for certain; ``release`` must follow for each of its leases."""
        holder = self._nodes.pop(node, None)
        return self._lose(tuple(holder.held.values())) if holder else []

    def forgotten(self, node: str, attempts: Iterable[str]) -> list[LostLease]:
        """The node lives and knows nothing of these leases; ``release`` must follow for each."""
        holder = self._nodes.get(node)
        if holder is None:
            return []
        return self._lose(tuple(holder.held[a] for a in attempts if a in holder.held))

    def release(self, lost: LostLease, now: float) -> bool:
        """No commit was found of a lost lease's try: it counts as invalid, the harness's doing.

        Returns:
            Whether it counts: False if the node's word or a commit came in the meantime.
        """
        entry = self._attempts[lost.attempt]
        if entry.state is not State.LOST or entry.epoch != lost.epoch:
            return False
        self._invalid(entry, Blame.HARNESS, now)
        return True

    # Looking

    @property
    def settled(self) -> bool:
        """Whether every attempt is committed, dead, or parked until the sweep is resumed."""
        return self._unsettled == 0

    def held(self, node: str) -> Mapping[str, Epoch]:
        """The leases that a node holds: attempt to epoch."""
        holder = self._nodes.get(node)
        if holder is None:
            return {}
        return {a: entry.epoch for a, entry in holder.held.items() if entry.epoch is not None}

    def held_count(self) -> int:
        """Leases held by all nodes together."""
        return sum(len(holder.held) for holder in self._nodes.values())

    def state(self, attempt: str) -> State | None:
        """Where an attempt is; None if it is not of this sweep."""
        entry = self._attempts.get(attempt)
        return None if entry is None else entry.state

    def spent(self, attempt: str) -> Spent:
        """The invalid tries of an attempt so far."""
        return self._attempts[attempt].spent

    def counts(self) -> Mapping[str, Counts]:
        """The attempts by condition and state; live values, to be read at once."""
        return {name: condition.counts for name, condition in self._conditions.items()}

    def next_due(self) -> float | None:
        """When the first attempt in back-off may be leased, on the queue's clock."""
        return self._line.next_due()

    # The moves

    def _holder(self, node: str, now: float) -> NodeLeases:
        holder = self._nodes.setdefault(node, NodeLeases(renewed_at=now))
        holder.renewed_at = max(holder.renewed_at, now)
        return holder

    def _give(self, entry: Attempt, node: str, holder: NodeLeases) -> Lease:
        self._counter += 1
        entry.epoch = Epoch(self._generation, self._counter)
        entry.node = node
        entry.leased_at = holder.renewed_at
        entry.poisons = True
        self._move(entry, State.LEASED)
        holder.held[entry.attempt] = entry
        return Lease(
            attempt=entry.attempt,
            index=entry.index,
            cell=entry.cell.cell,
            epoch=entry.epoch,
            term_s=self._limits.lease_term_s,
        )

    def _lose(self, entries: tuple[Attempt, ...]) -> list[LostLease]:
        """Loses leases together: one event, which counts once for each cell's poison limit."""
        lost: list[LostLease] = []
        cells: set[Cell] = set()
        for entry in entries:
            if entry.epoch is None:
                continue
            entry.poisons = entry.cell not in cells
            cells.add(entry.cell)
            self._move(entry, State.LOST)
            lost.append(
                LostLease(
                    attempt=entry.attempt,
                    index=entry.index,
                    cell=entry.cell.cell,
                    epoch=entry.epoch,
                    node=entry.node,
                    leased_at=entry.leased_at,
                )
            )
        return lost

    def _invalid(self, entry: Attempt, blame: Blame, now: float) -> None:
        entry.cell.condition.counts.invalid_tries += 1
        entry.spent = entry.spent.after(blame)
        if RULES[blame].retry is not Retry.ON_RESUME and entry.poisons:
            entry.cell.invalid_in_a_row += 1
        match after_invalid(entry.spent, blame, self._limits.max_tries):
            case Next.ON_RESUME:
                self._move(entry, State.PARKED)
            case Next.AGAIN if not entry.cell.poisoned:
                self._again(entry, now + delay_s(entry.spent, blame))
            case _:
                self._move(entry, State.DEAD)
        if entry.cell.invalid_in_a_row >= self._limits.poison and not entry.cell.poisoned:
            self._poison(entry.cell)

    def _again(self, entry: Attempt, until: float | None = None) -> None:
        self._move(entry, State.PLANNED)
        if until is None:
            self._line.push(entry, first=True)
        else:
            self._line.delay(entry, until)

    def _poison(self, cell: Cell) -> None:
        cell.poisoned = True
        self.poisoned.append(cell.cell)
        for entry in cell.attempts:
            if entry.state is State.PLANNED:
                self._move(entry, State.DEAD)

    def _move(self, entry: Attempt, target: State) -> None:
        source = entry.state
        check_move(entry.attempt, source, target)
        entry.state = target
        if source in HELD and target not in HELD:
            holder = self._nodes.get(entry.node)
            if holder is not None:
                holder.held.pop(entry.attempt, None)
        counts = entry.cell.condition.counts
        _count(counts, source, -1)
        _count(counts, target, +1)
        self._unsettled += (source in SETTLED) - (target in SETTLED)


def _open(entry: Attempt) -> bool:
    return entry.state in HELD or entry.state is State.LOST


def _count(counts: Counts, state: State, by: int) -> None:
    match state:
        case State.PLANNED:
            counts.planned += by
        case State.LEASED | State.RUNNING | State.LOST:
            counts.held += by
        case State.DEAD:
            counts.dead += by
        case State.PARKED:
            counts.parked += by
        case State.COMMITTED:
            pass  # counted by verdict, by whoever knows it
