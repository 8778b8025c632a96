"""Stores, disks and clocks that fail under a trial, and a bug of ours."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.classification.cases import case
from tests.classification.small_s3 import SmallS3, small_s3
from tests.classification.trials import SAY, accident, at_work, trial, until
from tests.workers.trial.stage import Stage
from workers.contract.outcome import Phase
from workers.contract.result import TryRecord
from workers.storage import open_store

OUTAGE_S = 30.0


async def on_s3(folder: Path, during: Phase, happens: Any, **options: Any) -> TryRecord:
    """A trial on a small S3 to which something happens during a phase."""
    async with small_s3() as server:

        async def accident_of(here: Stage) -> None:
            await happens(server)

        store = await asyncio.to_thread(open_store, server.url)
        return await accident(folder, during, accident_of, SAY, store=store, **options)


@case("store", "away for 30 s", "pass none none seal never")
async def _outage(folder: Path) -> TryRecord:
    async def happens(server: SmallS3) -> None:
        await server.down()
        await asyncio.sleep(OUTAGE_S)
        await server.up()

    record = await on_s3(folder, Phase.VERIFY, happens)
    assert record.files
    return record


@case("store", "away for ever", "invalid harness store_unavailable seal whole")
async def _away(folder: Path) -> TryRecord:
    record = await on_s3(folder, Phase.VERIFY, SmallS3.down, seal_s=4.0)
    assert list((folder / "work" / "trials").glob("*/out/evidence.json")), "the only copy is gone"
    return record


@case("store", "it refuses us for the time", "invalid harness clock_skew seal whole")
async def _skewed(folder: Path) -> TryRecord:
    async def happens(server: SmallS3) -> None:
        server.skewed = True

    return await on_s3(folder, Phase.VERIFY, happens, seal_s=2.0)


@asynccontextmanager
async def small_disk(folder: Path, size: str) -> AsyncIterator[Path]:
    """A file system of its own, of this size."""
    place = folder / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "apiary-small-disk", str(place)]
    await asyncio.to_thread(subprocess.run, mount, check=True, timeout=30)
    try:
        yield place
    finally:
        await asyncio.to_thread(subprocess.run, ["umount", str(place)], check=True, timeout=30)


def fill(place: Path, left: int = 0) -> None:
    """Leaves so many bytes of the disk."""
    with (place / "filler").open("wb") as stream:
        stream.write(b"\0" * (shutil.disk_usage(place).free - left))


@case("store", "no room on the node for the task", "invalid harness disk_full prepare whole")
async def _no_room(folder: Path) -> TryRecord:
    async with small_disk(folder, "8k") as place:
        return await trial(folder, workspace=place)


@case("store", "no room on the node in mid trial", "invalid harness disk_full drive whole")
async def _filled(folder: Path) -> TryRecord:
    async def happens(here: Stage) -> None:
        await at_work(here)
        await asyncio.to_thread(fill, here.workspace)

    async with small_disk(folder, "64m") as place:
        return await accident(folder, Phase.DRIVE, happens, "sleep 600", workspace=place)


@case("store", "an agent that dies of a full disk", "invalid harness disk_full drive whole")
async def _died_of_it(folder: Path) -> TryRecord:
    command = (
        "head -c 60000000 /dev/zero > /logs/agents/a; head -c 9000000 /dev/zero > /logs/agents/b"
    )
    async with small_disk(folder, "64m") as place:
        return await trial(folder, f"{command}; kill -9 $PPID", workspace=place)


@case("store", "no room on the node for the verifier", "invalid harness disk_full verify whole")
async def _no_verdict(folder: Path) -> TryRecord:
    async def happens(here: Stage) -> None:
        (artifacts,) = (here.workspace / "trials").glob("*/artifacts")
        await until((artifacts / "buzz-evidence.json").is_file)
        (artifacts / "stop").touch()
        await asyncio.to_thread(fill, here.workspace)
        (artifacts / "stop").rename(artifacts / "go")

    tests = "while [ ! -e /logs/artifacts/go ]; do sleep 0.1; done; python3 -B /tests/verify.py\n"
    async with small_disk(folder, "64m") as place:
        return await accident(
            folder, Phase.VERIFY, happens, SAY, workspace=place, test_sh=tests, verifier_s=60.0
        )


@case("store", "no room on the node for the evidence", "invalid harness disk_full collect whole")
async def _no_evidence(folder: Path) -> TryRecord:
    async def happens(here: Stage) -> None:
        await asyncio.to_thread(fill, here.workspace, 400 * 1024)

    long = "head -c 60000 /dev/zero | tr '\\0' x | buzz messages send --channel CHANNEL --content -"
    posts = f"for i in 1 2 3 4 5 6 7 8 9; do {long}; sleep 1.1; done"
    async with small_disk(folder, "64m") as place:
        return await accident(folder, Phase.PROVISION, happens, posts, workspace=place)


@case("store", "evidence that cannot be written", "invalid harness evidence_export collect whole")
async def _unwritable(folder: Path) -> TryRecord:
    async def happens(here: Stage) -> None:
        (out,) = (here.workspace / "trials").glob("*/out")
        (out / "evidence.json").mkdir()

    return await accident(folder, Phase.LAUNCH, happens, SAY)


class BuggyStore:
    """A store of ours with a bug in it."""

    def __init__(self, folder: Path) -> None:
        self._real = open_store(f"file://{folder}/store")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def get(self, key: str) -> bytes:
        """Where the bug is."""
        return self._real.get(key)[key]  # type: ignore[call-overload, no-any-return]


@case("bug", "a bug of ours", "invalid unclassified unclassified prepare once")
async def _bug(folder: Path) -> TryRecord:
    record = await trial(folder, SAY, store=BuggyStore(folder))
    assert record.traceback is not None
    assert "in get" in record.traceback
    return record
