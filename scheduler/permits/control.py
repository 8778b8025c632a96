"""What a driver does about providers: permits to nodes, endpoints parked, the operator told.

No waiting here: it is told what nodes say, and looked through with every turn of the driver's
loop.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from scheduler.permits.health import EndpointHealth
from scheduler.permits.lender import POLL_S, PermitLender, Throttled
from workers.contract.endpoint import Endpoint
from workers.contract.permits import Loan
from workers.contract.report import Progress

SHOWN_S = 60.0
"""An account counts as throttled for so long after a refusal."""
QUIET_S = 600.0
"""Without a refusal, before the next is told to the operator again."""


class Parking(Protocol):
    """Where endpoints and nodes are taken out and put back (``WorkQueue``)."""

    def endpoint_down(self, name: str, now: float, why: str = ...) -> bool:
        """Its cells wait from now."""
        ...

    def endpoint_up(self, name: str) -> bool:
        """Its cells go on."""
        ...

    def node_down(self, name: str, now: float, why: str) -> bool:
        """It gets only probes from now."""
        ...


class Told(Protocol):
    """Who is told (``Observer``)."""

    def note(self, text: str) -> None:
        """A sentence for the operator."""
        ...


class ProviderControl:
    """Rate control and health of a sweep's endpoints."""

    def __init__(self, endpoints: Mapping[str, Endpoint], clock: Callable[[], float]) -> None:
        """Nothing is lent yet; ``clock`` is monotonic seconds."""
        self._lender = PermitLender(endpoints, clock)
        self._health = EndpointHealth(clock)
        self._told_at: dict[str, float] = {}

    def lend(self, node: str) -> dict[str, Loan]:
        """What to tell a node now."""
        return self._lender.lend(node)

    def heard(self, node: str, progress: Progress) -> None:
        """A node has answered the orders that it was sent last."""
        self._lender.heard(node, progress)
        self._health.heard(node, progress.endpoints)

    def lost(self, node: str) -> None:
        """A node is dead, or was given up."""
        self._lender.lost(node)
        self._health.lost(node)

    def poll_s(self, poll_s: float) -> float:
        """How long a node may hold its answer: shorter while requests wait for permits."""
        return min(poll_s, POLL_S) if self._lender.is_tight else poll_s

    def look(self, parking: Parking, told: Told, now: float) -> None:
        """Parks what is down, frees what is back, and tells of refusals."""
        found = self._health.judge()
        for endpoint, why in found.down.items():
            parking.endpoint_down(endpoint, now, why)
        for endpoint in found.up:
            parking.endpoint_up(endpoint)
        for node, why in found.cut_off.items():
            parking.node_down(node, now, why)
        for each in self._lender.throttled(SHOWN_S):
            last = self._told_at.get(each.account)
            self._told_at[each.account] = now
            if last is None or now - last > QUIET_S:
                told.note(_sentence(each))

    def throttled(self) -> tuple[str, ...]:
        """Endpoints whose provider has refused requests in the last minute."""
        found = (name for each in self._lender.throttled(SHOWN_S) for name in each.endpoints)
        return tuple(sorted(found))


def _sentence(each: Throttled) -> str:
    names = ", ".join(each.endpoints)
    pace = "" if each.requests_per_s is None else f", {60 * each.requests_per_s:.0f} a minute"
    return (
        f"endpoint {names}: the provider refuses requests (429); {each.window} at once{pace} go on "
        f"to it now, {each.waiting} wait"
    )
