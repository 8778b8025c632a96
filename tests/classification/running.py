"""Runs cases side by side in one event loop, and says how each ended."""

from __future__ import annotations

import asyncio
import os
import time
import traceback
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.classification.cases import Case, Row, end_of
from tests.classification.injected import injected
from tests.classification.trials import docker

AT_ONCE = 6
LONG = ("node", "operator", "store")
"""Groups with cases that wait more than they work: they begin first."""
CASE_S = 240.0


def run(cases: Iterable[Case], folder: Path) -> list[Row]:
    """How each case ended, in the order given; nothing of them is left in the engine."""
    with injected():
        return asyncio.run(_run(list(cases), folder))


async def _run(cases: list[Case], folder: Path) -> list[Row]:
    with ThreadPoolExecutor(32) as pool:
        asyncio.get_running_loop().set_default_executor(pool)
        places = asyncio.Semaphore(AT_ONCE)
        numbered = sorted(enumerate(cases), key=lambda one: (one[1].group not in LONG, one[0]))
        running = {
            number: asyncio.ensure_future(_one(each, folder / f"case-{number}", places))
            for number, each in numbered
        }
        rows = [await running[number] for number in range(len(cases))]
        mine = ("--filter", f"label=apiary.node=stage-{os.getpid()}")
        left = await docker("ps", "-aq", *mine) + await docker("volume", "ls", "-q", *mine)
        assert not left, f"left in the engine: {left}"
    return rows


async def _one(each: Case, folder: Path, places: asyncio.Semaphore) -> Row:
    async with places:
        await asyncio.to_thread(folder.mkdir)
        started = time.monotonic()
        found, fault = None, ""
        try:
            record = await asyncio.wait_for(each.provoke(folder), CASE_S)
            found = end_of(record)
            if record.leftovers:
                fault = f"left over: {record.leftovers}"
            elif found != each.expected:
                fault = record.detail
        except Exception:  # noqa: BLE001 - shown with the case's name, beside the others
            fault = traceback.format_exc()
        return Row(each.group, each.name, each.expected, found, fault, time.monotonic() - started)
