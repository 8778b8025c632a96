"""What breaks around the agent: images, containers, the relay, the agent's own process."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
from pathlib import Path

from tests.classification.cases import case
from tests.classification.crowded import CrowdedEngine, crowd
from tests.classification.injected import LYING, RELAY_AHEAD_S, RELAYS
from tests.classification.trials import (
    SAY,
    accident,
    at_work,
    container_of,
    docker,
    pid_of,
    trial,
)
from tests.workers.trial.stage import DOCKERFILE, Stage
from workers.contract.endpoint import Endpoint
from workers.contract.outcome import Phase
from workers.contract.result import TryRecord
from workers.contract.task import DirectoryEntry, Fixture, MemorySeed

WRAPPED = """\
RUN real=$(readlink -f "$(command -v python3)") && mv "$real" "$real.real" \\
 && printf '%s\\n' '#!/bin/sh' 'case "$*" in *workers.agent*) {does};; esac' \\
    "exec $real.real \\"\\$@\\"" > "$real" && chmod 755 "$real"
"""
"""A Python that does its work, but for starting the agent."""
EAT = "python3 -c 'b = bytearray(10**9)'"


@case("start", "an image that does not build", "invalid harness image_build prepare whole")
async def _build(folder: Path) -> TryRecord:
    return await trial(folder, dockerfile=f"{DOCKERFILE}RUN echo no such thing >&2; exit 3\n")


@case("start", "no agent binary in the image", "invalid harness agent_launch prepare whole")
async def _missing(folder: Path) -> TryRecord:
    gone = "RUN while p=$(command -v python3); do mv $p $p.gone; done\n"
    return await trial(folder, dockerfile=DOCKERFILE + gone)


@case("start", "an agent binary that may not run", "invalid harness agent_launch prepare whole")
async def _not_executable(folder: Path) -> TryRecord:
    barred = 'RUN while p=$(command -v python3); do chmod a-x "$(readlink -f $p)"; done\n'
    return await trial(folder, dockerfile=DOCKERFILE + barred)


@case("start", "an entry point that exits", "invalid harness agent_launch launch whole")
async def _exits(folder: Path) -> TryRecord:
    return await trial(folder, dockerfile=DOCKERFILE + WRAPPED.format(does="exit 7"))


@case("start", "an agent that exits at once", "invalid harness agent_launch launch whole")
async def _exits_at_once(folder: Path) -> TryRecord:
    wrong = {"BUZZ_AGENT_HANDOFF_AT_TOKENS": "many"}
    endpoint = Endpoint(provider="scripted", base_url="http://127.0.0.1:9/v1", env=wrong)
    return await trial(folder, endpoint=endpoint)


@case("start", "an agent that never subscribes", "invalid harness readiness_timeout launch whole")
async def _never_subscribes(folder: Path) -> TryRecord:
    asleep = DOCKERFILE + WRAPPED.format(does="exec sleep 600")
    return await trial(folder, dockerfile=asleep, launch_s=6.0)


@case(
    "start", "more cores asked for than there are", "invalid harness container_start launch whole"
)
async def _refused(folder: Path) -> TryRecord:
    return await trial(folder, environment={"cpus": 4096})


@case(
    "start", "no place for the relay's socket", "invalid harness relay_unavailable provision whole"
)
async def _no_socket(folder: Path) -> TryRecord:
    async def happens(here: Stage) -> None:
        shutil.rmtree(here.sockets)

    return await accident(folder, Phase.PREPARE, happens)


@case("start", "a relay of another time", "invalid harness clock_skew provision whole")
async def _relay_ahead(folder: Path) -> TryRecord:
    mark = RELAY_AHEAD_S.set(3600.0)
    try:
        return await trial(folder)
    finally:
        RELAY_AHEAD_S.reset(mark)


@case(
    "start", "a profile too long for the relay", "invalid harness provision_failed provision whole"
)
async def _profile(folder: Path) -> TryRecord:
    entry = DirectoryEntry(name="Bot", role="bot", about="x" * 300_000)
    return await trial(folder, fixture=Fixture(directory=(entry,)))


@case("start", "a memory seed that is refused", "invalid harness seed_failed provision whole")
async def _seed(folder: Path) -> TryRecord:
    seed = MemorySeed(slug="core", value="x" * 70_000)
    return await trial(folder, fixture=Fixture(memories=(seed,)))


@case("run", "the container killed from outside", "invalid harness container_lost drive whole")
async def _killed(folder: Path) -> TryRecord:
    async def happens(here: Stage) -> None:
        await at_work(here)
        await docker("kill", await container_of(here))

    record = await accident(folder, Phase.DRIVE, happens, "sleep 600")
    assert "logs/agents/solo-1.stdout.log" in record.files
    return record


@case(
    "run",
    "the container killed from outside, after a child of the agent's had no memory",
    "invalid harness container_lost drive whole",
)
async def _killed_later(folder: Path) -> TryRecord:
    async def happens(here: Stage) -> None:
        await at_work(here, 2)
        await docker("kill", await container_of(here))

    return await accident(folder, Phase.DRIVE, happens, EAT, "sleep 600")


@case("run", "the container removed from outside", "invalid harness container_lost drive whole")
async def _removed(folder: Path) -> TryRecord:
    async def happens(here: Stage) -> None:
        await at_work(here)
        await docker("rm", "-f", await container_of(here))

    return await accident(folder, Phase.DRIVE, happens, "sleep 600")


@case("run", "the agent killed by its own command", "invalid harness agent_died drive whole")
async def _died(folder: Path) -> TryRecord:
    record = await trial(folder, "kill -9 $PPID")
    assert "killed by signal 9" in record.detail
    assert record.agent_exits == {"solo-1": 137}
    return record


@case(
    "run",
    "the agent killed by its own command, after a child of its had no memory",
    "invalid harness agent_died drive whole",
)
async def _died_later(folder: Path) -> TryRecord:
    return await trial(folder, f"{EAT}; kill -15 $PPID")


@case(
    "run",
    "the node out of memory, the container within its limit",
    "invalid harness node_oom drive whole",
)
async def _node_oom(folder: Path) -> TryRecord:
    # The kernel picks the process with the highest score: the agent offers itself.
    record = await on_a_crowded_node(folder, f"echo 1000 > /proc/$PPID/oom_score_adj; {GO}; {EAT}")
    assert record.agent_exits == {"solo-1": 137}
    return record


@case(
    "run",
    "the node out of memory, and a command of the agent's killed",
    "invalid harness node_oom drive whole",
)
async def _node_oom_of_a_child(folder: Path) -> TryRecord:
    record = await on_a_crowded_node(folder, f"{GO}; {EAT}")
    assert record.agent_exits == {}
    return record


GO = "while [ ! -e /logs/agents/go ]; do sleep 0.1; done"


async def on_a_crowded_node(folder: Path, command: str) -> TryRecord:
    """A trial with room in its container, and none around it once its command may go."""

    async def happens(here: Stage) -> None:
        await at_work(here)
        container = await container_of(here)
        await crowd(await pid_of(container), container)
        (logs,) = (here.workspace / "trials").glob("*/agents")
        await asyncio.to_thread((logs / "go").touch)

    roomy = {"memory_mb": 4096}
    return await accident(
        folder, Phase.DRIVE, happens, command, environment=roomy, engine_class=CrowdedEngine
    )


@case("run", "the relay killed in mid trial", "invalid harness relay_unavailable drive whole")
async def _relay(folder: Path) -> TryRecord:
    async def happens(here: Stage) -> None:
        await at_work(here)
        await RELAYS[here.sockets].close()

    return await accident(folder, Phase.DRIVE, happens, "sleep 600")


@case("run", "an engine that cannot prove a death", "invalid harness freeze_failed freeze whole")
async def _freeze(folder: Path) -> TryRecord:
    async def happens(here: Stage) -> None:
        await at_work(here)
        status = Path(f"/proc/{await pid_of(await container_of(here))}/status")
        told = await asyncio.to_thread(status.read_text)
        shim = int(told.partition("PPid:")[2].split()[0])
        os.kill(shim, signal.SIGSTOP)
        try:
            await asyncio.wait_for(here.control.reached[Phase.FREEZE].wait(), 60.0)
            await asyncio.sleep(here.sweep.limits.freeze_s + 1.0)
        finally:
            os.kill(shim, signal.SIGCONT)

    return await accident(folder, Phase.DRIVE, happens, "sleep 600", agent_s=12.0, freeze_s=2.0)


@case(
    "run",
    "a derived field that contradicts its tags",
    "invalid harness evidence_unsound collect whole",
)
async def _unsound(folder: Path) -> TryRecord:
    mark = LYING.set(True)
    try:
        return await trial(folder, SAY)
    finally:
        LYING.reset(mark)
