"""A gigabyte of output, really written: what it costs the node in memory, disk and store."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.workers.trial.stage import Reply, Stage, stage
from workers.container.disk import MIB, used_bytes
from workers.contract.outcome import Cause, Verdict
from workers.contract.trial import TrialEnd

pytestmark = [pytest.mark.docker, pytest.mark.alone]

GIB = 1024 * MIB
SAY = "buzz messages send --channel CHANNEL --content 'hello'"
STDOUT = "logs/agents/solo-1.stdout.log"


@dataclass
class Peak:
    """The most that was seen while something ran."""

    rss: int = 0
    """Bytes of memory of this process, above what it had at first."""
    disk: int = 0
    """Bytes of a folder."""


@contextmanager
def peaks(folder: Path) -> Iterator[Peak]:
    """Looks at memory and disk every few milliseconds."""
    peak, ended = Peak(), threading.Event()
    before = rss()

    def look() -> None:
        while not ended.wait(0.02):
            peak.rss = max(peak.rss, rss() - before)
            peak.disk = max(peak.disk, used_bytes(folder, 1 << 50))

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield peak
    finally:
        ended.set()
        thread.join()


def rss() -> int:
    """Resident memory of this process, bytes."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096


def run_trial(tmp_path: Path, *replies: Reply, **options: object) -> tuple[TrialEnd, Stage, Peak]:
    """One try; the agents may store two gigabytes."""

    async def go() -> tuple[TrialEnd, Stage, Peak]:
        async with stage(
            tmp_path,
            *replies,
            environment={"storage_mb": 2048},
            log_bytes=MIB,
            agent_s=120.0,
            **options,  # type: ignore[arg-type]
        ) as here:
            with peaks(here.workspace) as peak:
                end = await here.trial()
            return end, here, peak

    return asyncio.run(go())


def stored_bytes(here: Stage) -> int:
    return sum(path.stat().st_size for path in here.store_folder.rglob("*") if path.is_file())


def assert_bounded(here: Stage, peak: Peak, end: TrialEnd) -> None:
    """A gigabyte went through; the node keeps a few per cent of it at any time, the store less."""
    assert (end.record.verdict, end.record.cause) == (Verdict.PASS, Cause.NONE)
    assert peak.rss < 64 * MIB
    assert peak.disk < GIB // 2
    assert stored_bytes(here) < 3 * MIB


def test_a_gigabyte_in_the_agents_log_is_cut_while_it_is_written(tmp_path: Path) -> None:
    # No faster than a disk: memory takes a gigabyte between two looks at the folder.
    part = "yes 0123456789abcde | head -c 16777216 >> /logs/agents/solo-1.stdout.log; sleep 0.05"
    flood = f"for part in $(seq {GIB // 2**24}); do {part}; done"
    end, here, peak = run_trial(tmp_path, flood, SAY)
    assert_bounded(here, peak, end)
    kept = here.stored(end, STDOUT)
    dropped = end.record.log_bytes_dropped[STDOUT]
    assert dropped > GIB - 2 * MIB
    assert f"\n[{dropped} bytes left out]\n".encode() in kept
    # What was written before the flood, and the markers after it, are there.
    assert b"turn starting for channel" in kept[: MIB // 2]
    assert b"turn complete for channel" in kept[-MIB // 2 :]
    assert list(end.record.log_bytes_dropped) == [STDOUT]


def test_a_gigabyte_of_bytes_through_the_shell_tool_stays_in_the_container(
    tmp_path: Path,
) -> None:
    flood = f"head -c {GIB} /dev/urandom; head -c 1000 /dev/urandom >&2"
    end, here, peak = run_trial(tmp_path, flood, SAY)
    assert_bounded(here, peak, end)
    told = json.dumps(here.requests[1])
    assert f"the whole but {GIB - 10_000_000 - 8192} bytes before the last 8192" in told


def test_a_gigabyte_of_a_verifier_costs_its_beginning_and_nothing_else(tmp_path: Path) -> None:
    script = (
        f"yes $(printf %01000d 7) | head -c {GIB}; printf '\\nlast \\377 words\\n'\n"
        "python3 -B /tests/verify.py\n"
    )
    end, here, peak = run_trial(tmp_path, SAY, test_sh=script, verifier_s=120.0)
    assert_bounded(here, peak, end)
    output = here.stored(end, "logs/verifier/output.log").decode()
    assert len(output) < 16 * 1024
    assert "bytes left out]" in output
    assert output.endswith("last \\xff words\n")
