"""A node actor whose trials are simulated; Ray imports it on the node's side."""

from __future__ import annotations

import asyncio
import os
from contextlib import AsyncExitStack

from tests.scheduler.builders import record
from workers.actor import NodeActor, OpenOptions
from workers.config import NodeConfig
from workers.contract.outcome import Cause
from workers.contract.spec import CellSpec, Lease, SweepSpec
from workers.contract.trial import Commit, Control, TrialEnd, TrialFunction


class FakeNodeActor(NodeActor):
    """Trials take ``TRIAL_S`` of the environment and pass, unless they are cancelled before."""

    async def assemble(
        self, sweep: SweepSpec, options: OpenOptions, config: NodeConfig, owned: AsyncExitStack
    ) -> TrialFunction:
        """Needs neither Docker nor a store."""
        seconds = float(os.environ.get("TRIAL_S", "0.05"))

        async def run(cell: CellSpec, lease: Lease, control: Control) -> TrialEnd:
            try:
                async with asyncio.timeout(seconds):
                    await control.cancelled.wait()
            except TimeoutError:
                return TrialEnd(record(cell, lease, node=options.node), Commit.WRITTEN)
            ended = record(cell, lease, Cause.CANCELLED, node=options.node)
            return TrialEnd(ended, Commit.NONE)

        return run
