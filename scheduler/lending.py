"""A sweep's budget, lent to its nodes in parts. Pure.

Each node has a ceiling on what it may spend in all, told anew with every orders. What it has not
used comes back by a lower ceiling, which counts once the node has said that it obeys it. The sum of
what all nodes may spend is never above the budget.

*The bound:* calls never pass the budget. Tokens and cost pass it at most by what the calls come to
that are in flight when the nodes reach their ceilings, since a call's tokens are known at its end.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from scheduler.manifest import SweepBudget
from workers.contract.budget import Allowance, Spending, is_reached
from workers.contract.report import Progress
from workers.contract.result import TryRecord

LEAST_SHARE = 0.001
"""Of the budget: less is not divided any further."""


def counted(record: TryRecord) -> Spending:
    """What a try's calls count for; of a record without it, what is known."""
    usage = record.usage
    if usage.counted.calls or not usage.calls:
        return usage.counted
    return Spending(
        calls=usage.calls,
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cost_usd=usage.cost_usd,
    )


@dataclass(frozen=True)
class Earlier:
    """What was spent under earlier drivers."""

    recorded: Spending = field(default_factory=Spending)
    """In tries that have a record."""
    tries: frozenset[str] = frozenset()
    """These, as ``<attempt>/<try>``."""
    lost: Spending = field(default_factory=Spending)
    """Lent to nodes that died, without a record."""
    left: Mapping[str, Spending] = field(default_factory=dict)
    """By node: what it had spent without a record when its driver was heard of last."""


@dataclass
class _Loan:
    """What one node has."""

    recorded: Spending = field(default_factory=Spending)
    """Of its spending: in tries that ended and have a record."""
    tries: set[str] = field(default_factory=set)
    """These."""
    spent: Spending = field(default_factory=Spending)
    ceilings: dict[str, float] = field(default_factory=dict)
    """The highest that may be in force there, of what is limited."""
    wants: bool = False
    in_use: bool = False
    """Whether it runs something, or has been given something to run."""


class Lender:
    """Lends a sweep's budget to its nodes."""

    def __init__(self, budget: SweepBudget, earlier: Earlier | None = None) -> None:
        """Nothing is lent yet.

        Args:
            budget: of the whole sweep.
            earlier: what was spent under earlier drivers; null: nothing.
        """
        limits = {
            "calls": budget.max_calls,
            "input_tokens": budget.max_input_tokens,
            "output_tokens": budget.max_output_tokens,
            "cost_usd": budget.max_cost_usd,
        }
        self._limits = {name: limit for name, limit in limits.items() if limit is not None}
        known = earlier or Earlier()
        self._twice = set(known.tries)
        """Tries whose spending counts already; an adopted node counts them once more."""
        self._left = dict(known.left)
        self._lost = known.lost
        self._past = sum(known.left.values(), known.recorded + known.lost)
        """Spent by earlier drivers, or lent to nodes that are gone."""
        self._loans: dict[str, _Loan] = {}

    @property
    def is_limited(self) -> bool:
        """Whether there is a budget at all."""
        return bool(self._limits)

    @property
    def spent(self) -> Spending:
        """By all nodes and drivers, as far as it is known."""
        return sum((loan.spent for loan in self._loans.values()), self._past)

    @property
    def share(self) -> float | None:
        """Of the budget that is spent, the largest of its figures; None: there is no budget."""
        spent = self.spent
        shares = [
            getattr(spent, name) / limit if limit else 1.0 for name, limit in self._limits.items()
        ]
        return max(shares, default=None)

    @property
    def is_over(self) -> bool:
        """Whether the budget is spent."""
        return self.reached is not None

    @property
    def reached(self) -> str | None:
        """The first limit that is reached, as a person reads it."""
        # Asked twice for every exchange: nothing is added up that is not limited.
        for name, limit in self._limits.items():
            used = getattr(self._past, name)
            used += sum(getattr(loan.spent, name) for loan in self._loans.values())
            if is_reached(limit, used):
                return f"max_{name} {limit:g}, {used:.6g} are spent"
        return None

    def lend(self, node: str, *, gives_work: bool = False) -> Allowance | None:
        """The ceiling to tell a node now; None: there is no limit."""
        if not self._limits:
            return None
        loan = self._loans.setdefault(node, _Loan())
        loan.in_use = loan.in_use or gives_work
        ceilings = {name: self._ceiling(name, limit, loan) for name, limit in self._limits.items()}
        loan.ceilings = {
            name: max(loan.ceilings.get(name, 0), ceiling) for name, ceiling in ceilings.items()
        }
        return Allowance.model_validate(ceilings)

    @property
    def unrecorded(self) -> tuple[Spending, dict[str, Spending]]:
        """What no record tells: lent to nodes that died, and by node what is spent so far."""
        left = dict(self._left)
        for node, loan in self._loans.items():
            left[node] = left.get(node, Spending()) + loan.spent.less(loan.recorded)
        return self._lost, left

    def adopted(self, node: str) -> None:
        """An earlier driver's node goes on here: it tells itself what it spends."""
        self._past = self._past.less(self._left.pop(node, Spending()))

    def heard(self, node: str, progress: Progress) -> None:
        """A node has answered the orders that it was sent last."""
        loan = self._loans.setdefault(node, _Loan())
        if progress.spent.calls < loan.spent.calls:
            # Spending does not shrink: another process has its name now.
            self.lost(node)
            loan = self._loans.setdefault(node, _Loan())
        loan.spent = progress.spent
        for record in (*progress.ended, *progress.late):
            self._recorded(loan, record)
        loan.wants = progress.wants
        loan.in_use = bool(progress.running)
        if progress.ceiling is not None:
            said = {name: getattr(progress.ceiling, name) for name in self._limits}
            loan.ceilings = {name: value for name, value in said.items() if value is not None}

    def lost(self, node: str) -> None:
        """A node is dead for certain: what it was lent counts as spent, since it may be."""
        loan = self._loans.pop(node, None)
        if loan is not None:
            taken = loan.spent.model_copy(
                update={name: max(self._most(name, loan)) for name in self._limits}
            )
            self._past = self._past + taken
            self._lost = self._lost + taken.less(loan.recorded)

    def returned(self, node: str) -> None:
        """A node that ran nothing any more was ended: what it did not spend is there again."""
        if node in self._loans:
            self._loans[node].ceilings = {}
            self.lost(node)

    def _recorded(self, loan: _Loan, record: TryRecord) -> None:
        key = f"{record.attempt}/{record.try_}"
        if key in loan.tries:
            return
        loan.tries.add(key)
        spending = counted(record)
        loan.recorded = loan.recorded + spending
        if key in self._twice:
            self._twice.discard(key)
            self._past = self._past.less(spending)

    def _most(self, name: str, loan: _Loan) -> tuple[float, float]:
        """What is spent, and up to where it may go."""
        return getattr(loan.spent, name), loan.ceilings.get(name, 0)

    def _ceiling(self, name: str, limit: float, loan: _Loan) -> float:
        spent: float = getattr(loan.spent, name)
        others = [each for each in self._loans.values() if each is not loan]
        lent = sum(max(self._most(name, each)) for each in others)
        free = limit - getattr(self._past, name) - lent - spent
        if free <= 0 or not (loan.in_use or loan.wants):
            return spent
        if not loan.wants and any(each.wants for each in others):
            # Somebody waits: what lies idle here is better there.
            return spent
        sharers = 1 + sum(each.in_use or each.wants for each in others)
        if isinstance(limit, int):
            share: float = max(1, int(free) // sharers)
        else:
            share = min(free, max(free / sharers, limit * LEAST_SHARE))
        return spent + share
