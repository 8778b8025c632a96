"""A node actor whose trials are simulated; Ray imports it on the node's side."""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import AsyncExitStack
from pathlib import Path

from tests.scheduler.builders import record
from workers.actor import NodeActor, NodeSetupError, OpenOptions
from workers.config import NodeConfig
from workers.contract.outcome import Cause
from workers.contract.result import TryRecord, result_key, try_prefix
from workers.contract.spec import CellSpec, Lease, SweepSpec
from workers.contract.trial import Commit, Control, TrialEnd, TrialFunction
from workers.storage import Store, open_store


class FakeNodeActor(NodeActor):
    """Trials take ``TRIAL_S`` of the environment and pass, unless they are cancelled before.

    Where ``DIES_ONCE`` names a file, the node kills itself in its third trial if the file is
    not there yet. Where ``REFUSES`` is set, it cannot be opened.
    """

    async def assemble(
        self, sweep: SweepSpec, options: OpenOptions, config: NodeConfig, owned: AsyncExitStack
    ) -> TrialFunction:
        """Needs no Docker."""
        if why := os.environ.get("REFUSES"):
            raise NodeSetupError(why)
        store = open_store(sweep.store)
        seconds = float(os.environ.get("TRIAL_S", "0.05"))
        begun = 0

        async def run(cell: CellSpec, lease: Lease, control: Control) -> TrialEnd:
            nonlocal begun
            begun += 1
            if begun == 3:
                _die_once()
            try:
                async with asyncio.timeout(seconds):
                    await control.cancelled.wait()
            except TimeoutError:
                return _seal(store, record(cell, lease, node=options.node))
            return _seal(store, record(cell, lease, Cause.CANCELLED, node=options.node))

        return run


def _seal(store: Store, ended: TryRecord) -> TrialEnd:
    document = ended.to_json().encode() + b"\n"
    store.put(f"{try_prefix(ended.sweep, ended.attempt, ended.try_)}/try.json", document)
    if ended.cause is not Cause.NONE:
        return TrialEnd(ended, Commit.NONE)
    created = store.create(result_key(ended.sweep, ended.attempt), document)
    return TrialEnd(ended, Commit.WRITTEN if created else Commit.SUPERSEDED)


def _die_once() -> None:
    mark = os.environ.get("DIES_ONCE")
    if mark and not Path(mark).exists():
        Path(mark).touch()
        os.kill(os.getpid(), signal.SIGKILL)
