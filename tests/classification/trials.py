"""Single trials of the classification: the stage of the trial's own tests, and its accidents."""

from __future__ import annotations

import asyncio
import subprocess
import textwrap
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from tests.workers.trial.stage import Reply, Stage, stage
from workers.contract.outcome import Phase
from workers.contract.result import TryRecord

WAIT_S = 120.0
SAY = "buzz messages send --channel CHANNEL --content 'hello'"
"""What the verifier below takes for right."""

COUNTING = textwrap.dedent(
    """\
    import json, pathlib
    evidence = json.loads(pathlib.Path("/logs/artifacts/buzz-evidence.json").read_text())
    said = [m["content"] for m in evidence["messages"] if m["author_role"] == "orchestrator"]
    reward = {"reward": float(said == ["hello"])}
    pathlib.Path("/logs/verifier/reward.json").write_text(json.dumps(reward))
    """
)
"""One message was due, and it is known which."""

Accident = Callable[[Stage], Awaitable[None]]


async def trial(folder: Path, *replies: Reply, **options: Any) -> TryRecord:
    """One try from its lease to its end, judged by ``COUNTING``."""
    return await accident(folder, Phase.PREPARE, _nothing, *replies, **options)


async def accident(
    folder: Path, during: Phase, happens: Accident, *replies: Reply, **options: Any
) -> TryRecord:
    """One try to which something happens as soon as it has entered a phase."""
    async with stage(folder, *replies, **{"verifier": COUNTING, **options}) as here:
        running = asyncio.ensure_future(here.trial())
        try:
            entered = asyncio.ensure_future(here.control.reached[during].wait())
            await asyncio.wait({running, entered}, timeout=WAIT_S, return_when="FIRST_COMPLETED")
            entered.cancel()
            if not running.done():
                await happens(here)
            end = await asyncio.wait_for(running, WAIT_S)
        finally:
            running.cancel()
        return end.record


async def _nothing(_: Stage) -> None:
    """Every trial's hope."""


async def docker(*words: str) -> list[str]:
    """What the engine's command line says, word for word."""
    command = ["docker", *words]
    done = await asyncio.to_thread(
        subprocess.run, command, capture_output=True, check=True, text=True, timeout=WAIT_S
    )
    return done.stdout.split()


async def container_of(here: Stage) -> str:
    """The running container of the stage's trial."""
    (found,) = await docker(
        "ps", "-q", "--no-trunc", "--filter", f"label=apiary.sweep={here.sweep.sweep}"
    )
    return found


async def pid_of(container: str) -> int:
    """A container's first process, as this machine numbers it."""
    (found,) = await docker("inspect", "--format", "{{.State.Pid}}", container)
    return int(found)


async def until(condition: Callable[[], Any]) -> None:
    """Waits for something that another process does."""
    async with asyncio.timeout(WAIT_S):
        while not condition():  # noqa: ASYNC110 - of another process: there is nothing to wait on
            await asyncio.sleep(0.05)


async def at_work(here: Stage, calls: int = 1) -> None:
    """Waits until the model was asked so many times."""
    await until(lambda: len(here.requests) >= calls)
