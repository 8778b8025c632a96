"""The attempts of a queue by what is known of them, and what each move between states does. Pure.

What a bad cell, a bad node, a lost node and a bad provider do, told apart: a cell is poisoned
by tries in a row that gave no verdict, but where another node is at hand only if more than one
node had a part in them, so that a bad node poisons no cell. A node's breaker counts at most two
failures of a cell, and those of more than one condition, so that neither a bad cell nor a bad
condition opens any node's breaker. Leases that were lost together
count once towards each cell's limit and towards no breaker. A provider's failures count towards
its endpoint's breaker and nothing else.
"""

from __future__ import annotations

from collections import Counter

from scheduler.queue.attempts import Attempt, Cell, Condition, Counts, LostLease, NodeLeases
from scheduler.queue.breakers import Breakers
from scheduler.queue.fair_line import FairLine
from scheduler.queue.states import HELD, SETTLED, State, check_move
from scheduler.retry import Next, Spent, after_invalid, delay_s
from workers.contract.outcome import BLAME_OF, RULES, Cause, Retry
from workers.contract.spec import Epoch, Limits


class Moves:
    """What a ``WorkQueue`` consists of; it alone says which move is due when."""

    def __init__(self, limits: Limits, grace_s: float | None) -> None:
        """As ``WorkQueue``."""
        self._limits = limits
        self._grace_s = limits.lease_term_s / 6 if grace_s is None else grace_s
        self._attempts: dict[str, Attempt] = {}
        self._cells: dict[str, Cell] = {}
        self._conditions: dict[str, Condition] = {}
        self._nodes: dict[str, NodeLeases] = {}
        self._line = FairLine()
        self._breakers = Breakers(limits, self._line)
        self._unsettled = 0
        self._standings: Counter[tuple[Cell, str, str]] = Counter()
        """Every attempt by cell, state and the cause of its commit or last try."""
        self.poisoned: list[str] = []
        """Cells that reached the poison limit, in that order."""

    @property
    def unsettled(self) -> int:
        """Attempts that are neither committed, dead, nor parked."""
        return self._unsettled

    @property
    def waiting(self) -> int:
        """Of them, those that no node has."""
        return self._unsettled - sum(len(holder.held) for holder in self._nodes.values())

    def _holder(self, node: str, now: float) -> NodeLeases:
        holder = self._nodes.setdefault(node, NodeLeases(renewed_at=now))
        holder.renewed_at = max(holder.renewed_at, now)
        self._breakers.node(node)
        return holder

    def _hold(self, entry: Attempt, node: str, holder: NodeLeases, epoch: Epoch) -> None:
        entry.epoch = epoch
        entry.node = node
        entry.leased_at = holder.renewed_at
        entry.poisons = True
        self._move(entry, State.LEASED)
        holder.held[entry.attempt] = entry

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

    def _invalid(
        self, entry: Attempt, cause: Cause, spent: Spent, now: float, *, poisons: bool = True
    ) -> None:
        blame = BLAME_OF[cause]
        cell = entry.cell
        self._because(entry, cause)
        cell.condition.counts.invalid_tries += 1
        entry.spent = spent
        self._breakers.invalid(entry, now)
        if RULES[blame].retry is not Retry.ON_RESUME and entry.poisons and poisons:
            cell.invalid_in_a_row += 1
            cell.failed_on.add(entry.node)
        match after_invalid(entry.spent, blame, self._limits.max_tries):
            case Next.ON_RESUME:
                self._move(entry, State.PARKED)
            case Next.AGAIN if not cell.poisoned:
                self._again(entry, now + delay_s(entry.spent, blame))
            case _:
                self._move(entry, State.DEAD)
        if self._is_poison(cell, entry.node, now):
            self._poison(cell)

    def _is_poison(self, cell: Cell, node: str, now: float) -> bool:
        if cell.poisoned or cell.invalid_in_a_row < self._limits.poison:
            return False
        return len(cell.failed_on) > 1 or not self._another_at_hand(node, now)

    def _another_at_hand(self, node: str, now: float) -> bool:
        """Whether a second node is in use, that could show whether the first is to blame."""
        term = self._limits.lease_term_s + self._grace_s
        return any(
            name != node
            and now - holder.renewed_at <= term
            and not self._breakers.node(name).is_open
            for name, holder in self._nodes.items()
        )

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
        entry.cell.line.planned += (target is State.PLANNED) - (source is State.PLANNED)
        counts = entry.cell.condition.counts
        _count(counts, source, -1)
        _count(counts, target, +1)
        self._unsettled += (source in SETTLED) - (target in SETTLED)
        self._stands(entry, source, -1)
        self._stands(entry, target, +1)

    def _because(self, entry: Attempt, cause: Cause | None) -> None:
        """Notes the cause of an attempt's commit or last try, which stays in its state."""
        self._stands(entry, entry.state, -1)
        entry.cause = cause
        self._stands(entry, entry.state, +1)

    def _stands(self, entry: Attempt, state: State, by: int) -> None:
        cause = entry.cause
        # Plain texts: an enum's member is hashed ten times slower.
        key = (entry.cell, state._value_, "" if cause is None else cause._value_)
        count = self._standings[key] + by
        if count:
            self._standings[key] = count
        else:
            # Else what no attempt stands at any more would be visited by every view.
            del self._standings[key]


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
