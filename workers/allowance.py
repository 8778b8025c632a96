"""What a node may still spend of its sweep's budget: lent by the driver, checked before a call.

A call takes its place in the count of calls when it is let go, and its tokens and cost when it
has ended. So a node passes its ceiling by the tokens and the cost of the calls that are in flight
when it is reached, and never by a call.

*Why a call waits:* a ceiling that is reached says that the node has used what it was lent, not
that the sweep has nothing left. The driver raises it, or says that the budget is spent; a node
that hears of no driver goes on within what it has.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from contextlib import suppress

from workers.contract.budget import Allowance, Spending

PATIENCE_S = 120.0
"""How long a call waits for more; two of the driver's lease terms by default."""


class Purse:
    """The spending of one node under one driver generation."""

    def __init__(self, patience_s: float = PATIENCE_S) -> None:
        """Without a limit, until ``lend`` says otherwise."""
        self._patience_s = patience_s
        self._limit: Allowance | None = None
        self._is_over = False
        self._by_try: dict[str, Spending] = {}
        self._spent = Spending()
        self._waiting = 0
        self._changed = asyncio.Event()
        self._asked = False
        self.on_want: Callable[[], None] = lambda: None
        """Called once for each loan when a call has to wait for more."""

    @property
    def spent(self) -> Spending:
        """Since the start under this driver; a call in flight counts as a call only."""
        return self._spent

    @property
    def ceiling(self) -> Allowance | None:
        """The limit in force; None: there is none."""
        return None if self._limit is None else self._limit.not_below(self._spent)

    @property
    def wants(self) -> bool:
        """Whether a call waits for more."""
        return self._waiting > 0

    def lend(self, limit: Allowance | None, *, is_over: bool) -> None:
        """The driver's word: the new ceiling, and whether the sweep's budget is spent."""
        if (limit, is_over) == (self._limit, self._is_over):
            return
        self._limit, self._is_over = limit, is_over
        self._asked = False
        self._changed.set()
        self._changed = asyncio.Event()

    def restart(self, unfinished: Collection[str]) -> None:
        """Another driver: it counts what stands in the records, so only other tries are kept."""
        self._by_try = {key: each for key, each in self._by_try.items() if key in unfinished}
        self._spent = sum(self._by_try.values(), Spending())
        self._limit, self._is_over = None, False

    async def admit(self, try_: str) -> str | None:
        """Lets a call of a try go and counts it, waiting for more where none is left.

        Returns:
            Why it may not go; None: it may.
        """
        self._waiting += 1
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._patience_s):
                    return await self._admit(try_)
            return "this node has used what it was lent, and no driver lends more"
        finally:
            self._waiting -= 1

    async def _admit(self, try_: str) -> str | None:
        while self._limit is not None and self._limit.reached(self._spent):
            if self._is_over:
                return "the budget of the sweep is spent"
            changed = self._changed
            if not self._asked:
                self._asked = True
                self.on_want()
            await changed.wait()
        self._add(try_, Spending(calls=1))
        return None

    def charge(self, try_: str, spending: Spending) -> None:
        """Counts the tokens and the cost of a call that has ended; it was counted as a call."""
        self._add(try_, spending.model_copy(update={"calls": 0}))

    def _add(self, try_: str, spending: Spending) -> None:
        self._by_try[try_] = self._by_try.get(try_, Spending()) + spending
        self._spent = self._spent + spending
