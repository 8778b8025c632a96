"""A sweep that is far larger than its machine leaves the machine usable."""

from __future__ import annotations

import os
import secrets
import signal
import statistics
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.base_image import base_image
from tests.flow.sweeps import DEMO, apiary, left_in_docker

pytestmark = [pytest.mark.docker, pytest.mark.ray, pytest.mark.alone]

ATTEMPTS = 400
PROBES = 60
"""Of each kind: a 95th percentile of 60 is the fourth largest."""
TIMES = 3.0
"""What a call may take while the sweep runs, in multiples of what it takes without."""
SLACK_S = 0.1
"""Beside the ratio: idle calls take a few hundredths of a second, a busy machine's jitter more."""


@contextmanager
def bystander() -> Iterator[str]:
    """A container that has nothing to do with any sweep."""
    name = f"bystander-{secrets.token_hex(4)}"
    run("docker", "run", "-d", "--name", name, "--network=none", base_image(), "sleep", "1000")
    try:
        yield name
    finally:
        run("docker", "rm", "-f", name)


def run(*command: str) -> str:
    """What a program says."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    return done.stdout


def exec_seconds(name: str, count: int, ended: threading.Event | None = None) -> list[float]:
    """How long ``docker exec … true`` takes, one after another with a pause between."""
    seconds: list[float] = []
    while len(seconds) < count and not (ended is not None and ended.is_set()):
        began = time.monotonic()
        run("docker", "exec", name, "true")
        seconds.append(time.monotonic() - began)
        time.sleep(0.1)
    return seconds


def p95(seconds: list[float]) -> float:
    """The 95th percentile."""
    return statistics.quantiles(seconds, n=20)[-1]


@dataclass
class Seen:
    """What was seen while a sweep ran."""

    seconds: list[float] = field(default_factory=list)
    most: int = 0
    """Containers of the sweep at once."""
    ended: int = 0
    probes: threading.Thread | None = None
    over: threading.Event = field(default_factory=threading.Event)


def test_four_hundred_attempts_leave_the_machine_responsive(tmp_path: Path) -> None:
    with bystander() as name:
        idle = exec_seconds(name, PROBES)
        seen = Seen()
        sweeps: list[str] = []

        def probe(sweep: str, pid: int) -> None:
            count = threading.Thread(target=count_containers, args=(sweep, seen))
            count.start()
            seen.seconds = exec_seconds(name, PROBES, seen.over)
            seen.over.set()
            count.join()
            # Enough was seen: running trials are ended and cleaned up.
            os.kill(pid, signal.SIGINT)
            os.kill(pid, signal.SIGINT)

        def watch(event: dict[str, Any], pid: int) -> None:
            if event["event"] == "start":
                sweeps.append(event["sweep"])
            if event["event"] == "try":
                seen.ended += 1
            if event["event"] == "try" and seen.probes is None:
                seen.probes = threading.Thread(target=probe, args=(sweeps[0], pid))
                seen.probes.start()

        try:
            command = ("run", str(DEMO), "--attempts", str(ATTEMPTS // 4 // 3 + 1))
            ran = apiary(tmp_path, *command, on_event=watch)
        finally:
            seen.over.set()
            if seen.probes is not None:
                seen.probes.join()
        assert ran.events[0]["attempts"] >= ATTEMPTS
        told = f"idle {p95(idle):.3f} s, loaded {p95(seen.seconds):.3f} s, {seen}"
        assert len(seen.seconds) == PROBES, told
        assert 0 < seen.most <= 2 * 4 * (os.cpu_count() or 1), told
        assert seen.ended >= 10, told
        assert p95(seen.seconds) <= TIMES * p95(idle) + SLACK_S, told
        assert not any(left_in_docker(ran.sweep).values())


def count_containers(sweep: str, seen: Seen) -> None:
    """Counts a sweep's containers now and then until enough was seen."""
    listing = ("docker", "ps", "-aq", "--filter", f"label=apiary.sweep={sweep}")
    while not seen.over.wait(0.5):
        seen.most = max(seen.most, len(run(*listing).split()))
