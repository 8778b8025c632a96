"""How one driver of a sweep follows another: what it waits for, and when it gives way."""

from __future__ import annotations

from contextlib import suppress

from scheduler.claim_format import DriverClaim, described, share_nodes
from scheduler.claims import SILENT_S, Claims
from scheduler.stop import GiveWay, StopSignal
from scheduler.view import Observer
from workers.contract.spec import Limits
from workers.storage.interface import StoreError

CANCEL_S = 180.0
"""What an older driver may take to end trials that its lease's term did not see finished."""


class Succession:
    """A driver between the one before it and the one after it."""

    def __init__(self, claims: Claims, limits: Limits, observer: Observer) -> None:
        """``claims`` holds this driver's claim already."""
        self._claims = claims
        self._bound_s = limits.lease_term_s + CANCEL_S
        self._observer = observer

    async def wait_for_older(self, stop: StopSignal) -> None:
        """Waits until the drivers before this one are over, so that nothing is paid twice.

        One on the same cluster is not waited for: its nodes are adopted. Bounded by the lease's
        term and what a cancelled trial may take; ends early where the operator stops.

        Raises:
            StoreError: the store did not say who there was.
        """
        own = self._claims.own
        assert own is not None  # claimed before others are waited for
        for older in await self._claims.older():
            if not share_nodes(older, own):
                await self._wait_for(older, stop)

    async def newer(self) -> GiveWay | None:
        """Whether a newer driver runs the sweep; None also where the store does not answer."""
        own = self._claims.own
        assert own is not None  # claimed before others are looked for
        with suppress(StoreError):
            newer = await self._claims.newer()
            if newer is not None:
                return GiveWay(
                    f"{described(newer)} runs sweep {own.sweep} since {newer.started_at}; this "
                    f"one, {described(own)}, gives way",
                    at_once=share_nodes(own, newer),
                )
        return None

    async def _wait_for(self, older: DriverClaim, stop: StopSignal) -> None:
        told = False

        def tell() -> None:
            nonlocal told
            if not told:
                told = True
                self._observer.note(
                    f"{described(older)} has not said that it ended: waiting until it has, or "
                    f"is silent for {SILENT_S:g} s"
                )

        is_over = await self._claims.wait_for(
            older, self._bound_s, give_up=lambda: stop.draining, waiting=tell
        )
        if not is_over and not stop.draining:
            self._observer.note(f"{described(older)} did not end in {self._bound_s:g} s; going on")
        if older.ray_address is not None:
            self._observer.note(
                f"{described(older)} used the cluster at {older.ray_address}: nodes that it left "
                "there are adopted only by a driver that is given the same --ray-address"
            )
