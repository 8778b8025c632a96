"""A node whose disk is below the sweep's watermark, and is given a lease all the same."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from tests.classification.nodes import ProcessNode
from tests.classification.store_cases import small_disk
from tests.workers.trial.stage import stage
from workers.contract.report import Orders, Progress
from workers.contract.spec import Epoch, Lease, attempt_id


def draining_on_a_small_disk(folder: Path) -> Progress:
    """What the node answers."""
    return asyncio.run(_answer(folder))


async def _answer(folder: Path) -> Progress:
    async with stage(folder) as here, small_disk(folder, "64m") as place:
        lease = Lease(
            attempt=attempt_id(here.sweep.sweep, "c", "t", 0),
            index=0,
            cell=here.cell.cell,
            epoch=Epoch(1, 1),
            term_s=60.0,
        )
        orders = Orders(
            generation=1,
            received=0,
            cells={here.cell.cell: here.cell},
            leases=(lease,),
            wait_s=0.1,
        )
        node = await ProcessNode.start(f"small-{os.getpid()}")
        try:
            await node.open(here.sweep, place)
            return await node.exchange(orders)
        finally:
            await node.end()
