"""What every container of a trial carries: the proof of whose it is, and the bound of its log."""

from __future__ import annotations

import asyncio
import json
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from tests.workers.trial.stage import Stage, stage
from workers.container import ownership

pytestmark = pytest.mark.docker

SAY = "buzz messages send --channel CHANNEL --content 'hello'"
STARTED = ("docker", "events", "--format", "{{.ID}}", "--filter", "event=create", "--filter")


def test_every_container_says_whose_it_is_and_bounds_its_log(tmp_path: Path) -> None:
    async def go() -> tuple[Stage, list[dict[str, Any]]]:
        async with stage(tmp_path, SAY) as here:
            watch = await asyncio.to_thread(follow, here.sweep.sweep)
            reading = asyncio.create_task(asyncio.to_thread(inspected, watch))
            await here.trial()
            watch.terminate()
            return here, await reading

    here, containers = asyncio.run(go())
    assert len(containers) == 2, "the agents' and the verifier's"
    for each in containers:
        labels = each["Config"]["Labels"]
        assert labels[ownership.SWEEP] == here.sweep.sweep
        assert len(labels[ownership.ATTEMPT]) == 32
        assert labels[ownership.TRY] == labels[ownership.EPOCH] == "1-1"
        assert labels[ownership.NODE] == here.engine.node
        assert labels[ownership.OWNER] == ownership.this_process()
        assert int(labels[ownership.EXPIRES]) > 1_700_000_000
        assert ownership.proves(each["Name"].removeprefix("/"), labels)
        log = each["HostConfig"]["LogConfig"]
        assert (log["Config"]["max-size"], log["Config"]["max-file"]) == ("1m", "1")


def follow(sweep: str) -> subprocess.Popen[str]:
    """Says the id of each container of a sweep as it is created."""
    command = [*STARTED, f"label=apiary.sweep={sweep}", "--since", str(int(time.time()))]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def inspected(events: subprocess.Popen[str]) -> list[dict[str, Any]]:
    """The engine's record of each container as it is created."""
    found = []
    assert events.stdout is not None
    with events.stdout:
        for line in events.stdout:
            command = ["docker", "inspect", line.strip()]
            done = subprocess.run(command, capture_output=True, text=True, timeout=60)
            found += json.loads(done.stdout)
    events.wait()
    return found
