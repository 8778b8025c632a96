"""Stage 3, queue: Attempt -> Lease.

A state machine without I/O: the time is given, the store is asked by others. It is rebuilt
from the store at every start, so nothing here outlives the driver.

Every operation costs the same however many attempts there are, except that poisoning a cell
visits the cell's attempts, once. An endpoint's breaker parks and frees whole lines, of which
there are as many as conditions.

*Why one renewal time a node:* orders renew every lease that a node holds, so leases of a node
that has gone silent end together, and a heartbeat costs one assignment.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from scheduler.queue.attempts import Attempt, Cell, Condition, Counts, LostLease, NodeLeases
from scheduler.queue.breaker import Breaker
from scheduler.queue.breakers import BreakerChange
from scheduler.queue.moves import Moves
from scheduler.queue.states import HELD, State
from scheduler.retry import UNSPENT, Spent, may_try
from workers.contract.outcome import BLAME_OF, Cause, Verdict
from workers.contract.result import TryRecord
from workers.contract.spec import Epoch, Lease, Limits

__all__ = ["Counts", "LostLease", "WorkQueue"]

AVOIDED_AT_MOST = 32
"""Attempts passed over in one call because another node is preferred for their next try."""


class WorkQueue(Moves):
    """The attempts of one sweep under one driver generation."""

    def __init__(self, generation: int, limits: Limits, grace_s: float | None = None) -> None:
        """Starts empty.

        Args:
            generation: of this driver; every epoch carries it.
            limits: of the sweep.
            grace_s: how much longer than the term a lease is honoured here, so that the node's
                clock always ends it first; by default a sixth of the term.
        """
        super().__init__(limits, grace_s)
        self._generation = generation
        self._counter = 0

    # Putting in

    def enqueue(
        self,
        attempt: str,
        *,
        index: int,
        cell: str,
        condition: str,
        spent: Spent = UNSPENT,
        endpoints: Iterable[str] = (),
        every: int = 0,
        cause: Cause | None = None,
    ) -> None:
        """Plans an attempt; one whose tries are spent is dead at once.

        Args:
            attempt: its id; one that is known already is left as it is.
            index: which of the cell's attempts.
            cell: its cell.
            condition: the condition's name; leases go round over the conditions.
            spent: its invalid tries under earlier drivers.
            endpoints: the names of those that the cell's agents use; the same for all of a cell.
            every: of a canary: one for so many attempts of other conditions; 0: turns, as the rest.
            cause: of its last try under earlier drivers; null: there was none.
        """
        if attempt in self._attempts:
            return
        group = self._conditions.setdefault(condition, Condition(condition, every=every))
        home = self._cells.get(cell)
        if home is None:
            home = self._cells[cell] = Cell(cell, self._breakers.line(group, endpoints))
        entry = Attempt(attempt, index, home, spent, cause=cause)
        self._attempts[attempt] = entry
        self._stands(entry, entry.state, +1)
        home.attempts.append(entry)
        home.line.planned += 1
        group.counts.planned += 1
        group.counts.invalid_tries += spent.tries + spent.forgiven
        self._unsettled += 1
        if home.poisoned or not may_try(spent, self._limits.max_tries):
            self._move(entry, State.DEAD)
        else:
            self._line.push(entry)

    # To the nodes and back

    def lease(self, node: str, count: int, now: float) -> list[Lease]:
        """Leases up to ``count`` attempts to a node, the conditions in turn.

        An attempt whose last try was invalid goes to another node than before if another
        attempt can be leased instead. Giving leases renews the node's others. While the node's
        breaker is open it gets at most one lease, a probe, and only when one is due. Probes of
        endpoints come before all else, whichever node asks.
        """
        holder = self._holder(node, now)
        # Also where nothing is given: what is due would else be due for ever.
        self._line.admit(now)
        if self._breakers.node(node).is_open:
            return self._lease_probe(node, holder, now) if count > 0 else []
        leases: list[Lease] = []
        while len(leases) < count and (found := self._breakers.probe(now)) is not None:
            leases.append(self._give(found[0], node, holder, *found[1], probe=True))
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

    def adopt(self, node: str, tries: Mapping[str, Epoch], now: float) -> list[str]:
        """The node runs tries that an earlier driver leased to it.

        Those whose attempts are planned are held by the node from now on, under the epochs that
        they have; the others are left to end as they may. So is a try that this driver has
        counted as lost: it would count twice. Visits every planned attempt, once.

        Returns:
            The attempts that were adopted.
        """
        taken = {
            entry: epoch
            for attempt, epoch in tries.items()
            if (entry := self._attempts.get(attempt)) is not None
            and entry.state is State.PLANNED
            and entry.epoch != epoch
        }
        if not taken:
            return []
        self._line.remove(taken.keys())
        holder = self._holder(node, now)
        for entry, epoch in taken.items():
            self._hold(entry, node, holder, epoch)
            self._move(entry, State.RUNNING)
        return [entry.attempt for entry in taken]

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
        entry = self._attempts.get(record.attempt)
        if entry is None:
            return False
        if record.verdict is not Verdict.INVALID:
            if entry.try_ != record.try_:
                # An earlier try's: what its attempt's probe would have shown is not known.
                self._breakers.withdrawn(entry)
            return self.committed(record.attempt, record.verdict, record.cause)
        if entry.try_ != record.try_ or not _open(entry):
            return False
        culprit = self._breakers.culprit(entry, record)
        spent = entry.spent.after(record.blame, probe=record.probe)
        self._invalid(entry, record.cause, spent, now, poisons=culprit is None)
        self._breakers.reported(entry, record, culprit, now)
        return True

    def committed(self, attempt: str, verdict: Verdict, cause: Cause | None = None) -> bool:
        """The attempt's ``result.json`` exists, whoever wrote it: the first commit counts.

        Args:
            attempt: its id.
            verdict: of the commit.
            cause: of the commit; null: it is not known.

        Returns:
            Whether this is news.
        """
        entry = self._attempts.get(attempt)
        if entry is None or entry.state is State.COMMITTED:
            return False
        self._because(entry, cause)
        self._move(entry, State.COMMITTED)
        counts = entry.cell.condition.counts
        if verdict is Verdict.PASS:
            counts.passed += 1
        else:
            counts.failed += 1
        entry.cell.invalid_in_a_row = 0
        entry.cell.failed_on.clear()
        self._breakers.verdict(entry)
        return True

    def given_back(self, attempt: str, epoch: Epoch) -> bool:
        """A node refused the lease: no try was made, the attempt is next in its line.

        Returns:
            Whether the lease was held.
        """
        entry = self._attempts.get(attempt)
        if entry is None or entry.epoch != epoch or entry.state is not State.LEASED:
            return False
        self._breakers.withdrawn(entry)
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
        self._breakers.node_lost(node)
        holder = self._nodes.pop(node, None)
        return self._lose(tuple(holder.held.values())) if holder else []

    def forgotten(self, node: str, attempts: Iterable[str]) -> list[LostLease]:
        """The node lives and knows nothing of these leases; ``release`` must follow for each."""
        holder = self._nodes.get(node)
        if holder is None:
            return []
        return self._lose(tuple(holder.held[a] for a in attempts if a in holder.held))

    def release(self, lost: LostLease, now: float, cause: Cause = Cause.LEASE_EXPIRED) -> bool:
        """No commit was found of a lost lease's try: it counts as invalid, the harness's doing.

        Returns:
            Whether it counts: False if the node's word or a commit came in the meantime.
        """
        entry = self._attempts[lost.attempt]
        if entry.state is not State.LOST or entry.epoch != lost.epoch:
            return False
        self._invalid(entry, cause, entry.spent.after(BLAME_OF[cause]), now)
        return True

    # The word of others

    def endpoint_down(self, name: str, now: float, why: str = "its requests fail") -> bool:
        """Whoever sees an endpoint's requests says that they fail: its cells wait from now.

        Returns:
            Whether this is news: False if its breaker is open already, or no cell uses it.
        """
        return self._breakers.endpoint_down(name, now, why)

    def endpoint_up(self, name: str) -> bool:
        """Whoever sees an endpoint's requests says that they are answered again.

        Returns:
            Whether this is news.
        """
        return self._breakers.endpoint_up(name)

    def node_down(self, name: str, now: float, why: str) -> bool:
        """Whoever sees a node's requests says that they fail through it: only probes from now.

        Returns:
            Whether this is news.
        """
        return self._breakers.node_down(name, now, why)

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

    def standings(self) -> Iterable[tuple[str, str, str, int]]:
        """Every attempt, counted by cell, state and the cause of its commit or last try.

        The cause is empty where no try has ended, or nobody knows why it did.
        """
        return [
            (cell.cell, state, cause, count)
            for (cell, state, cause), count in self._standings.items()
        ]

    def next_due(self) -> float | None:
        """When the first attempt in back-off may be leased, on the queue's clock."""
        return self._line.next_due()

    @property
    def breaker_changes(self) -> Sequence[BreakerChange]:
        """Breakers that opened and closed so far, in that order."""
        return self._breakers.changes

    @property
    def parked_endpoints(self) -> tuple[str, ...]:
        """Endpoints whose breaker is open: what uses them waits, but for probes."""
        return self._breakers.down

    def waiting_for_endpoints(self) -> Mapping[str, float]:
        """Endpoint to when it was found to be down, if no open attempt waits for anything else.

        Empty otherwise, and while any attempt, a probe's too, is under way.
        """
        return self._breakers.waiting_since(self._unsettled)

    def broken_since(self, nodes: Iterable[str]) -> float | None:
        """Since when the breakers of all these nodes have been open; None if one is not."""
        return self._breakers.broken_since(nodes)

    def _lease_probe(self, node: str, holder: NodeLeases, now: float) -> list[Lease]:
        """What a node with an open breaker gets: one lease when it is due, else nothing."""
        breaker = self._breakers.node(node)
        if not breaker.is_due(now):
            return []
        entry = self._line.pop(now)
        if entry is not None:
            return [self._give(entry, node, holder, breaker)]
        # Else a broken node and an endpoint that is down would wait for each other.
        found = self._breakers.probe(now)
        if found is None:
            return []
        return [self._give(found[0], node, holder, breaker, *found[1], probe=True)]

    def _give(
        self,
        entry: Attempt,
        node: str,
        holder: NodeLeases,
        *probed: Breaker,
        probe: bool = False,
    ) -> Lease:
        """Leases an attempt; an endpoint's breaker among the probed makes it a ``probe``."""
        entry.probes = probed
        for breaker in probed:
            breaker.probe = entry
        self._counter += 1
        epoch = Epoch(self._generation, self._counter)
        self._hold(entry, node, holder, epoch)
        return Lease(
            attempt=entry.attempt,
            index=entry.index,
            cell=entry.cell.cell,
            epoch=epoch,
            term_s=self._limits.lease_term_s,
            probe=probe,
        )


def _open(entry: Attempt) -> bool:
    return entry.state in HELD or entry.state is State.LOST
