"""The circuit breakers of a sweep: who is told of what, and what may be leased as a probe. Pure.

*Why a provider's failures never poison a cell:* the poison limit is lower than the breaker's,
so a sweep of few cells would be given up before its endpoint's breaker could act; and what is
parked instead of poisoned goes on by itself. What remains of a cell that a provider alone
refuses, while other cells are answered, is bounded by the tries of each of its attempts. A
failure that names no endpoint has no breaker that could act, and poisons as any other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, NamedTuple

from scheduler.queue.attempts import Attempt, Condition, Line
from scheduler.queue.breaker import Breaker, EndpointBreaker, NodeBreaker
from scheduler.queue.fair_line import FairLine, take
from workers.contract.outcome import Blame
from workers.contract.result import TryRecord
from workers.contract.spec import Limits


class BreakerChange(NamedTuple):
    """A breaker opened, or closed."""

    kind: Literal["node", "endpoint"]
    name: str
    opened: bool
    why: str

    def __str__(self) -> str:
        """A sentence for the operator."""
        if not self.opened:
            return f"{self.kind} {self.name} works again: {self.why}"
        meaning = "gets only probes" if self.kind == "node" else "its cells wait, but for probes"
        return f"{self.kind} {self.name}: {meaning}: {self.why}"


class Breakers:
    """The breakers of all nodes and endpoints by name."""

    def __init__(self, limits: Limits, line: FairLine) -> None:
        """All closed; ``line`` is told which lines have their turn again."""
        self.changes: list[BreakerChange] = []
        self._limits = limits
        self._line = line
        self._nodes: dict[str, NodeBreaker] = {}
        self._endpoints: dict[str, EndpointBreaker] = {}
        self._lines: dict[tuple[str, tuple[str, ...]], Line] = {}
        self._down: dict[str, EndpointBreaker] = {}
        """Endpoints whose breakers are open."""

    # What there is

    def node(self, name: str) -> NodeBreaker:
        """A node's breaker; a new one is closed."""
        if name not in self._nodes:
            limits = self._limits
            self._nodes[name] = NodeBreaker(
                name, limits.node_probe_s, limits.node_breaker, limits.node_breaker_s
            )
        return self._nodes[name]

    def node_lost(self, name: str) -> None:
        """What takes its place under its name starts anew."""
        self._nodes.pop(name, None)

    @property
    def down(self) -> tuple[str, ...]:
        """The endpoints whose breakers are open."""
        return tuple(sorted(self._down))

    def line(self, condition: Condition, endpoints: Iterable[str]) -> Line:
        """The line of a condition's cells that use exactly these endpoints."""
        names = tuple(sorted(set(endpoints)))
        key = (condition.name, names)
        if key not in self._lines:
            used = tuple(self._endpoint(name) for name in names)
            line = Line(condition, used, parked_by=sum(each.is_open for each in used))
            for each in used:
                each.lines.append(line)
            self._lines[key] = line
        return self._lines[key]

    # What is heard

    def culprit(self, entry: Attempt, record: TryRecord) -> EndpointBreaker | None:
        """The endpoint at which the provider failed the try; None: it did not, or who can tell."""
        if record.blame is not Blame.PROVIDER:
            return None
        used = entry.cell.line.breakers
        if record.endpoint is None:
            return used[0] if len(used) == 1 else None
        return next((each for each in used if each.name == record.endpoint), None)

    def invalid(self, entry: Attempt, now: float) -> None:
        """The attempt's try gave no verdict, whoever is to blame."""
        for breaker in _given_up(entry):
            breaker.missed(now)

    def reported(
        self, entry: Attempt, record: TryRecord, culprit: EndpointBreaker | None, now: float
    ) -> None:
        """A node reported the invalid try; ``invalid`` was called before."""
        if culprit is not None:
            if culprit.failed(now):
                limit = self._limits.endpoint_breaker
                self._opened(culprit, f"{limit} tries in a row failed, the last by {record.cause}")
            return
        node = self._nodes.get(entry.node)
        if record.blame is not Blame.HARNESS or node is None:
            return
        condition = entry.cell.condition
        if not node.failed(entry.cell.cell, condition.name, now) or node.is_open:
            return
        if node.conditions > 1 or not self._others_left(condition):
            node.open(now)
            self._opened(node, f"its tries fail, the last by {record.cause}")

    def verdict(self, entry: Attempt) -> None:
        """The attempt has a verdict."""
        for endpoint in entry.cell.line.breakers:
            endpoint.answered()
        for breaker in _given_up(entry):
            self._close(breaker, "a probe gave a verdict")

    def withdrawn(self, entry: Attempt) -> None:
        """What the attempt's lease was to show will not be heard of: the next probe may follow."""
        for breaker in _given_up(entry):
            breaker.probe = None

    def endpoint_down(self, name: str, now: float, why: str) -> bool:
        """Its requests fail; whether that is news."""
        breaker = self._endpoints.get(name)
        if breaker is None or breaker.is_open:
            return False
        breaker.open(now)
        self._opened(breaker, why)
        return True

    def endpoint_up(self, name: str) -> bool:
        """Its requests are answered; whether that is news."""
        breaker = self._down.get(name)
        if breaker is None:
            return False
        self._close(breaker, "its requests are answered")
        return True

    def node_down(self, name: str, now: float, why: str) -> bool:
        """Its requests fail, and those of others do not; whether that is news."""
        breaker = self.node(name)
        if breaker.is_open:
            return False
        breaker.open(now)
        self._opened(breaker, why)
        return True

    # What follows

    def probe(self, now: float) -> tuple[Attempt, Sequence[Breaker]] | None:
        """An attempt that may be leased to probe endpoints, and which; taken out of its line.

        Where an attempt uses several endpoints that are down, all of them must be due. An
        endpoint's lines are probed in turn.
        """
        for breaker in self._down.values():
            if not breaker.is_due(now):
                continue
            for _ in range(len(breaker.lines)):
                line = breaker.lines[0]
                breaker.lines.rotate(-1)
                down = [each for each in line.breakers if each.is_open]
                if all(each.is_due(now) for each in down) and (entry := take(line)) is not None:
                    return entry, down
        return None

    def waiting_since(self, unsettled: int) -> Mapping[str, float]:
        """Endpoint to when it was found to be down, if all of so many attempts wait for them.

        Empty if any of the attempts waits for something else, or is under way.
        """
        parked = [line for line in self._lines.values() if line.parked_by and line.planned]
        if not parked or sum(line.planned for line in parked) != unsettled:
            return {}
        down = (each for line in parked for each in line.breakers)
        return {each.name: each.opened_at for each in down if each.opened_at is not None}

    def broken_since(self, nodes: Iterable[str]) -> float | None:
        """Since when the breakers of all these nodes have been open; None if one is not."""
        known = [self._nodes.get(name) for name in nodes]
        opened = [None if each is None else each.opened_at for each in known]
        times = [time for time in opened if time is not None]
        return max(times) if times and len(times) == len(opened) else None

    def _others_left(self, condition: Condition) -> bool:
        """Whether another condition has attempts that are not settled."""
        return any(
            line.condition is not condition
            and line.condition.counts.planned + line.condition.counts.held > 0
            for line in self._lines.values()
        )

    def _endpoint(self, name: str) -> EndpointBreaker:
        if name not in self._endpoints:
            self._endpoints[name] = EndpointBreaker(
                name, self._limits.endpoint_probe_s, self._limits.endpoint_breaker
            )
        return self._endpoints[name]

    def _opened(self, breaker: Breaker, why: str) -> None:
        if isinstance(breaker, EndpointBreaker):
            self._down[breaker.name] = breaker
        self.changes.append(BreakerChange(_kind(breaker), breaker.name, True, why))

    def _close(self, breaker: Breaker, why: str) -> None:
        breaker.close()
        if isinstance(breaker, EndpointBreaker):
            del self._down[breaker.name]
            for line in breaker.lines:
                self._line.resume(line)
        self.changes.append(BreakerChange(_kind(breaker), breaker.name, False, why))


def _given_up(entry: Attempt) -> list[Breaker]:
    """The breakers that still wait for the attempt's lease; none does from now."""
    probes, entry.probes = entry.probes, ()
    return [breaker for breaker in probes if breaker.probe is entry]


def _kind(breaker: Breaker) -> Literal["node", "endpoint"]:
    return "endpoint" if isinstance(breaker, EndpointBreaker) else "node"
