"""What a running sweep shows of itself, and who wants to see it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, Protocol

from workers.contract.report import RunningTry
from workers.contract.result import TryRecord
from workers.contract.spec import Lease


@dataclass(frozen=True)
class ConditionView:
    """The attempts of one condition, each counted in exactly one of the first five."""

    condition: str
    waiting: int
    """For a node, to be tried again, or for a resume."""
    running: int
    passed: int
    failed: int
    invalid: int
    """Given up: tries spent without a verdict."""
    invalid_tries: int
    """Invalid tries so far, whatever became of their attempts."""


class Standing(NamedTuple):
    """How an attempt stands; the key under which the attempts of a sweep are counted."""

    condition: str
    task: str
    layer: str
    state: str
    """Of the queue."""
    verdict: str
    """Of its commit, else of its last try; empty while none has ended."""
    blame: str
    cause: str


@dataclass(frozen=True)
class NodeView:
    """One node, as it said last."""

    node: str
    running: int
    free_slots: int
    draining: str
    """Why it takes no leases; empty: it does."""
    metrics: str = ""
    """``host:port`` of its metrics; empty: it serves none."""


class RunningOn(NamedTuple):
    """A try and the node that runs it."""

    node: str
    running: RunningTry


@dataclass(frozen=True)
class SweepView:
    """One moment of a sweep."""

    sweep: str
    conditions: tuple[ConditionView, ...]
    elapsed_s: float
    attempts_per_minute: float
    """Over the last minute or since the start."""
    eta_s: float | None
    """Null while nothing has ended."""
    nodes: int
    stopping: bool
    """No new leases are given: the operator asked to stop."""
    standings: Mapping[Standing, int] = field(default_factory=dict)
    """Every attempt, counted by how it stands."""
    node_views: tuple[NodeView, ...] = ()
    lost_nodes: int = 0
    """Nodes that were given up in this run and have not come back."""
    expired_leases: int = 0
    """In this run."""
    parked_endpoints: tuple[str, ...] = ()
    """Endpoints whose breaker is open: what uses them waits."""
    throttled_endpoints: tuple[str, ...] = ()
    """Endpoints whose provider has refused requests (429) in the last minute."""
    budget_share: float | None = None
    """Of the sweep's budget that is spent, the largest of its figures; null: there is none."""


class Observer(Protocol):
    """Told of a sweep's progress by the driver, in the driver's thread; must not block."""

    def moved(self, view: SweepView) -> None:
        """About once a second, and at the end."""
        ...

    def ended(self, record: TryRecord) -> None:
        """Once for every try that ended."""
        ...

    def note(self, text: str) -> None:
        """A sentence for the operator: a node lost, a try given back."""
        ...


@dataclass(frozen=True)
class Audience:
    """Who follows what dispatch does, beside the observer; must not block."""

    watched: Callable[[], tuple[str, ...]] = tuple
    """The attempts that somebody looks at closely."""
    leased: Callable[[str, Sequence[Lease]], None] = lambda node, leases: None
    """Called with a node's name and the leases that it is sent now."""


@dataclass(frozen=True)
class SweepEnd:
    """How a run of a sweep ended."""

    sweep: str
    state: Literal["settled", "interrupted", "infrastructure", "budget"]
    """``settled``: every attempt is committed or dead; ``infrastructure``: no node could work;
    ``budget``: the sweep's own budget is spent."""
    reason: str = ""
    idle: bool = False
    """Whether nothing was open, so that no node was asked."""
    revived: int = 0
    """Dead attempts that got fresh tries at its start."""
    gave_way: bool = False
    """Whether a newer driver runs the sweep now."""
    nodes_taken_over: bool = False
    """Whether a newer driver adopts this one's nodes with what they run."""


class Watched:
    """Several observers as one."""

    def __init__(self, *observers: Observer) -> None:
        self._observers = observers

    def moved(self, view: SweepView) -> None:
        """See ``Observer``."""
        for observer in self._observers:
            observer.moved(view)

    def ended(self, record: TryRecord) -> None:
        """See ``Observer``."""
        for observer in self._observers:
            observer.ended(record)

    def note(self, text: str) -> None:
        """See ``Observer``."""
        for observer in self._observers:
            observer.note(text)
