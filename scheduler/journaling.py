"""What a driver says in the sweep's journal; an observer."""

from __future__ import annotations

import platform
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from scheduler.errors import error_text
from scheduler.view import NodeView, SweepEnd, SweepView
from workers.contract.journal import DRIVER
from workers.contract.outcome import Verdict
from workers.contract.result import TryRecord
from workers.contract.spec import Lease
from workers.journal import Journal, LogFormat
from workers.storage.interface import Store

DETAIL_MAX = 300
LOGS = "logs"
"""The folder of ``.apiary``, and of a node's workspace, that logs are written to."""


@asynccontextmanager
async def open_journal(
    store: Store, sweep: str, generation: int, home: Path, kind: LogFormat
) -> AsyncIterator[DriverJournal]:
    """The journal of one driver generation, which also writes a log file below ``home``."""
    file = home / LOGS / sweep / f"driver-{generation}"
    async with Journal(
        store, sweep, DRIVER, file=file, kind=kind, generation=lambda: generation
    ) as journal:
        told = DriverJournal(journal)
        try:
            yield told
        except BaseException as error:
            journal.tell("driver_failed", error_text(error)[:DETAIL_MAX], level="error")
            raise
        if not told.is_over:
            journal.tell("driver_ended", "nothing was to be done")


class DriverJournal:
    """Turns what an observer is told into lines: two for a try, one for each other event."""

    def __init__(self, journal: Journal) -> None:
        """``journal`` is the driver's."""
        self._journal = journal
        self._nodes: dict[str, NodeView] = {}
        self._is_stopping = False
        self.is_over = False
        """Whether it was told how the sweep ended."""

    def begun(self, attempts: int) -> None:
        """The driver begins with so many planned attempts."""
        host = platform.node()
        self._journal.tell("driver_started", f"on host {host}, {attempts} attempts planned")

    def leased(self, node: str, leases: Sequence[Lease]) -> None:
        """Leases are sent to a node; sent again where no answer came."""
        for lease in leases:
            self._journal.tell("leased", node=node, attempt=lease.attempt, try_=str(lease.epoch))

    def moved(self, view: SweepView) -> None:
        """See ``Observer``."""
        if view.stopping and not self._is_stopping:
            self._is_stopping = True
            self._journal.tell("stopping", "no new leases are given", level="warning")
        there = {each.node: each for each in view.node_views}
        for name, node in there.items():
            before = self._nodes.get(name)
            if before is None:
                text = f"{node.running + node.free_slots} slots"
                self._journal.tell("node_found", text, node=name)
            if node.draining != ("" if before is None else before.draining):
                told = f"takes no leases: {node.draining}" if node.draining else "takes leases"
                self._journal.tell("node_state", told[:DETAIL_MAX], node=name)
        for name in self._nodes.keys() - there.keys():
            self._journal.tell("node_lost", node=name, level="warning")
        self._nodes = there

    def ended(self, record: TryRecord) -> None:
        """See ``Observer``."""
        text = record.verdict.value
        if record.verdict is not Verdict.PASS:
            text = f"{text}, {record.blame}: {record.cause}"
        if record.detail:
            text = f"{text}: {record.detail[:DETAIL_MAX]}"
        self._journal.tell(
            "ended",
            text,
            level="warning" if record.verdict is Verdict.INVALID else "info",
            node=record.node,
            attempt=record.attempt,
            phase=record.phase.value,
            try_=record.try_,
        )

    def note(self, text: str) -> None:
        """See ``Observer``."""
        self._journal.tell("note", text)

    def over(self, end: SweepEnd) -> None:
        """The driver has ended."""
        self.is_over = True
        self._journal.tell(
            "driver_ended",
            f"{end.state}: {end.reason}" if end.reason else end.state,
            level="error" if end.state == "infrastructure" else "info",
        )
