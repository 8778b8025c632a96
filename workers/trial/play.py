"""A trial without a model: the task's own solution plays it (``oracle``), or nobody (``nop``).

Neither relay nor gateway is opened, and no agent's files are mounted: the container's first
process sleeps, the solution is one command in it and the tests are another. The solution's files
are there for an oracle only; no container in which a model's agent runs ever has them.

A solution that ends, however it ends, is followed by the tests, and the reward decides. One that
does not end in its time is killed with everything else in the container.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from pathlib import Path
from typing import Any

from workers.container.disk import MIB
from workers.container.interface import (
    Container,
    ContainerError,
    ContainerLostError,
    ContainerSpec,
    ContainerTimeoutError,
    Mount,
)
from workers.contract.outcome import Cause, Outcome, Phase
from workers.contract.spec import Played
from workers.trial import decide
from workers.trial.disk_watch import DiskWatch
from workers.trial.errors import PhaseError, check_room, deadline
from workers.trial.facts import Facts
from workers.trial.files import read_log
from workers.trial.freeze import freeze_played, named
from workers.trial.handoff import Ending, Job, PlayedOut, Prepared, Tools, Unverified, Verified
from workers.trial.launch import AGENT_LOGS, DEATH_S, GRACE_S, state_mounts
from workers.trial.script import command_of, into_file
from workers.trial.verify import Verification
from workers.trial.verify_state import verify_state

SOLUTION = "/solution"
SOLVE = "solve.sh"
LOG = "oracle.log"
VARIABLES = {"DEBIAN_FRONTEND": "noninteractive"}
"""Of a solution, as in Harbor: nobody is there to answer."""


class Play:
    """One try, from its prepared image to its outcome."""

    def __init__(
        self,
        played: Played,
        job: Job,
        prepared: Prepared,
        tools: Tools,
        facts: Facts,
        phase: Callable[[Phase], AbstractAsyncContextManager[None]],
    ) -> None:
        """Starts nothing yet.

        Args:
            played: who plays.
            job: what the trial is asked to do.
            prepared: the image and the task's files.
            tools: the node's.
            facts: where it notes what the record says.
            phase: marks and times a phase.
        """
        self._played = played
        self._job = job
        self._prepared = prepared
        self._tools = tools
        self._facts = facts
        self._in = phase

    async def walk(self, verification: Verification, stack: AsyncExitStack) -> Outcome:
        """Launch, drive, freeze, collect, verify; the stack removes the container.

        Raises:
            PhaseError: what makes the try invalid.
        """
        job, facts = self._job, self._facts
        async with self._in(Phase.LAUNCH):
            container = await self._start(stack)
        async with self._in(Phase.DRIVE):
            out = await self._play(container)
        async with self._in(Phase.FREEZE):
            frozen = await freeze_played(job, container, ended=out.ending is Ending.TURN_ENDED)
        facts.freeze, facts.oom_events = frozen.mode, frozen.oom_events
        facts.survivors = named(frozen.survivors)
        if out.exit_code is not None:
            facts.agent_exits = {self._played: out.exit_code}
        async with self._in(Phase.COLLECT):
            await asyncio.to_thread(self._keep_log)
        facts.graded_live = bool(frozen.survivors)
        async with self._in(Phase.VERIFY):
            verified = await verify_state(
                self._tools.engine, container, verification, job.storage_bytes
            )
            if isinstance(verified, Unverified):
                check_room(job.folder.root)
        if isinstance(verified, Verified):
            facts.reward, facts.dimensions = verified.reward, dict(verified.dimensions)
        return decide.after_play(out, frozen, verified, job.sweep.pass_threshold)

    async def _start(self, stack: AsyncExitStack) -> Container:
        limits = self._job.sweep.limits
        async with deadline("launch_s", self._job.launch_s, Cause.CONTAINER_START):
            try:
                container = await self._tools.engine.start(self._spec(), self._job.launch_s)
            except ContainerError as error:
                raise PhaseError(Cause.CONTAINER_START, str(error)) from error
        stack.push_async_callback(container.remove, limits.teardown_s)
        return container

    @property
    def _solution(self) -> Path:
        """The task's own, shared by its trials on this node: it is mounted read-only."""
        return self._prepared.tests.parent / "solution"

    def _spec(self) -> ContainerSpec:
        job, environment = self._job, self._job.cell.task.config.environment
        limits, task = job.sweep.limits, job.cell.task
        seconds = int(
            job.launch_s
            + job.agent_timeout_s
            + limits.freeze_s
            + limits.collect_s
            + task.config.verifier.timeout_sec
            + GRACE_S
        )
        sealed = job.sweep.network == "sealed" or environment.network_mode == "none"
        solution = (Mount(self._solution, SOLUTION),)
        return ContainerSpec(
            image=self._prepared.image,
            command=("/bin/sh", "-c", f"exec sleep {seconds}"),
            labels={
                **job.labels,
                "apiary.node": self._tools.node,
                "apiary.expires": str(int(time.time()) + seconds),
            },
            environment=environment.env,
            mounts=(
                *state_mounts(job),
                Mount(job.folder.agent_logs, AGENT_LOGS, read_only=False),
                *(solution if self._played == "oracle" else ()),
            ),
            harden=False,
            network="none" if sealed else "public",
            hosts_file=job.folder.hosts,
            cpus=environment.cpus,
            memory_mb=environment.memory_mb,
            storage_mb=job.storage_bytes // MIB,
            workdir=environment.workdir or "",
        )

    async def _play(self, container: Container) -> PlayedOut:
        """Runs the solution to its end, to the task's deadline, or to the end of the disk."""
        if self._played == "nop":
            return PlayedOut(Ending.TURN_ENDED, None)
        job = self._job
        config = job.cell.task.config
        command = command_of(self._solution / SOLVE, f"{SOLUTION}/{SOLVE}")
        run = asyncio.ensure_future(
            container.execute(
                into_file(command, f"{AGENT_LOGS}/{LOG}"),
                {**VARIABLES, **config.solution.env},
                job.agent_timeout_s,
                config.agent.user or "",
            )
        )
        full = asyncio.ensure_future(self._filled(container))
        both: set[asyncio.Future[Any]] = {run, full}
        try:
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
            if not run.done():
                return PlayedOut(Ending.STORAGE_FULL, None, full.result())
            return PlayedOut(Ending.TURN_ENDED, run.result())
        except ContainerTimeoutError as error:
            return PlayedOut(Ending.TIMEOUT, None, f"solution/{SOLVE}: {error}")
        except ContainerLostError as error:
            raise self._lost(container, error) from error
        except ContainerError as error:
            try:
                ended = await container.ended(DEATH_S) is not None
            except ContainerLostError:
                ended = True
            cause = Cause.CONTAINER_LOST if ended else Cause.AGENT_LAUNCH
            raise PhaseError(cause, f"solution/{SOLVE}: {error}") from error
        finally:
            for each in both:
                each.cancel()
            await asyncio.gather(*both, return_exceptions=True)

    @staticmethod
    def _lost(container: Container, error: ContainerLostError) -> PhaseError:
        """Why the container ended while the solution ran."""
        if container.oom_events() and container.memory_limit_reached() is False:
            return PhaseError(Cause.NODE_OOM, f"{error}; the node had no memory left")
        return PhaseError(Cause.CONTAINER_LOST, str(error))

    async def _filled(self, container: Container) -> str:
        """Returns once the solution has stored more than it may, and says what.

        Raises:
            PhaseError: ``disk_full``: the node's disk has no room left.
        """
        job = self._job
        disk = DiskWatch(
            job.folder.agent_logs,
            container.layer,
            job.storage_bytes,
            job.sweep.limits.log_bytes,
            beside=job.folder.verifier_logs,
        )
        while True:
            await asyncio.sleep(disk.pause_s)
            check_room(job.folder.root)
            full = await asyncio.to_thread(disk.look)
            self._facts.storage_soft_mb = disk.layer_bytes and -(-disk.layer_bytes // MIB)
            if full:
                return full

    def _keep_log(self) -> None:
        """Keeps the solution's output among the try's files; blocks."""
        job = self._job
        name = f"logs/agents/{LOG}"
        kept = read_log(job.folder.agent_logs / LOG, job.sweep.limits.log_bytes)
        job.folder.write_log(name, kept.data, job.secrets)
        if kept.dropped:
            self._facts.log_bytes_dropped = {name: kept.dropped}
