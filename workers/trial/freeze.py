"""Phase 5, freeze: Launched -> Frozen. The agents are dead, and it is proved.

Tasks graded by evidence: the container is killed, and the proof is that it does not run. The OOM
counter is read before, since it dies with the container.

Tasks graded by their container's state need it running. ``agent``: the container's first process,
ours, kills the agents with all below them; what they had started and left to itself lives on, and
is named. ``all``: everything but the first process is killed from the host, proved by the control
group's list of processes. ``restart`` stands in where nobody may do that: the container is killed
and started again, and the list shows its first process alone.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import NamedTuple

from workers.container.interface import (
    Container,
    ContainerError,
    ContainerLostError,
    ExitState,
    NoDoorError,
    Process,
)
from workers.contract.outcome import Cause
from workers.contract.task import Freeze
from workers.trial.errors import PhaseError, deadline
from workers.trial.files import UnsafeFileError, read_guarded
from workers.trial.handoff import Frozen, Job, Launched, Provisioned

EXIT_FILE_BYTES = 4096
FREEZE_FILE = "freeze.json"
FROZEN_MARK = "frozen"
"""Beside the prompts, which only the node writes: the first process of a container that finds it
starts no agent."""
KILL_AGENTS = "USR1"
"""The signal at which the container's first process kills the agents."""
LOOK_S = 0.02
SURVIVORS = 50
"""Named in a record; ``freeze.json`` has all of them."""


class _Done(NamedTuple):
    """How a container that runs on was frozen."""

    mode: Freeze
    survivors: tuple[Process, ...] = ()
    killed: tuple[Process, ...] = ()
    """As far as the host saw it."""
    because: str = ""
    """Why it was done otherwise than the task says."""


async def freeze(job: Job, provisioned: Provisioned, launched: Launched) -> Frozen:
    """Stops the agents as the task's grading needs it.

    Raises:
        PhaseError: ``freeze_failed``: their death could not be proved in time; or
            ``container_lost``: somebody else had removed it.
    """
    seconds = job.sweep.limits.freeze_s
    container = launched.container
    exits = _agent_exits(job, provisioned)
    oom_events = container.oom_events()
    container.memory_limit_reached()
    done: _Done | None = None
    async with deadline("freeze_s", seconds, Cause.FREEZE_FAILED):
        try:
            if job.cell.task.freeze == "evidence":
                state: ExitState | None = await container.kill(seconds)
                done = _Done("evidence")
            else:
                state = await container.ended(0)
                if state is None:
                    done = await _freeze_running(job, launched, seconds)
                    _write(job, done)
        except ContainerLostError as error:
            raise PhaseError(Cause.CONTAINER_LOST, str(error)) from error
        except ContainerError as error:
            raise PhaseError(Cause.FREEZE_FAILED, str(error)) from error
    return Frozen(
        exit_state=state,
        oom_events=max(oom_events, container.oom_events()),
        agent_exits=exits,
        limit_reached=container.memory_limit_reached() is not False,
        mode=done.mode if done else None,
        survivors=done.survivors if done else (),
    )


async def freeze_played(job: Job, container: Container, *, ended: bool) -> Frozen:
    """Stops what a task's own solution left running, as the task's grading needs it.

    Args:
        job: what the trial is asked to do.
        container: in which it played.
        ended: the solution came to its end; else everything is killed, whatever the task says.

    Raises:
        PhaseError: ``freeze_failed`` or ``container_lost``, as ``freeze``.
    """
    seconds, mode = job.sweep.limits.freeze_s, job.cell.task.freeze
    async with deadline("freeze_s", seconds, Cause.FREEZE_FAILED):
        try:
            if ended and mode == "agent":
                found = await container.processes(seconds)
                pids = {process.pid for process in found}
                first = min(each.pid for each in found if each.parent not in pids)
                done = _Done("agent", tuple(each for each in found if each.pid != first))
            elif ended and mode == "restart":
                done = await _restart(job, container, seconds)
            else:
                try:
                    done = await _freeze_all(container, seconds)
                except NoDoorError as error:
                    done = await _restart(job, container, seconds, str(error))
        except ContainerLostError as error:
            raise PhaseError(Cause.CONTAINER_LOST, str(error)) from error
        except ContainerError as error:
            raise PhaseError(Cause.FREEZE_FAILED, str(error)) from error
        _write(job, done)
    return Frozen(
        exit_state=None,
        oom_events=container.oom_events(),
        agent_exits={},
        limit_reached=container.memory_limit_reached() is not False,
        mode=done.mode,
        survivors=done.survivors,
    )


async def _freeze_running(job: Job, launched: Launched, seconds: float) -> _Done:
    match job.cell.task.freeze:
        case "agent":
            return await _freeze_agents(launched, seconds)
        case "all":
            try:
                return await _freeze_all(launched.container, seconds)
            except NoDoorError as error:
                return await _restart(job, launched.container, seconds, str(error))
        case _:
            return await _restart(job, launched.container, seconds)


async def _freeze_agents(launched: Launched, seconds: float) -> _Done:
    """Has the agents killed, and waits until none of them is listed."""
    container = launched.container
    await container.signal(KILL_AGENTS, seconds)
    while True:
        found = await container.processes(seconds)
        if not any(process.pid in launched.agent_pids for process in found):
            survivors = tuple(each for each in found if each.pid != launched.first)
            return _Done("agent", survivors)
        await asyncio.sleep(LOOK_S)


async def _freeze_all(container: Container, seconds: float) -> _Done:
    done = await container.kill_all(seconds)
    if done.survivors:
        raise ContainerError(f"freeze: it cannot be killed: {_names(done.survivors)}")
    return _Done("all", killed=done.killed)


async def _restart(job: Job, container: Container, seconds: float, because: str = "") -> _Done:
    (job.folder.prompts / FROZEN_MARK).touch()
    found = await container.restart(seconds)
    if len(found) != 1:
        raise ContainerError(f"freeze: after a restart there run {_names(found)}")
    return _Done("restart", because=because)


def named(survivors: tuple[Process, ...]) -> tuple[str, ...]:
    """Processes for the record; a command is its process's own word, and may be anything."""
    return tuple(
        f"{each.pid} {''.join(sign if sign.isprintable() else ' ' for sign in each.command)}"
        for each in survivors[:SURVIVORS]
    )


def _names(processes: tuple[Process, ...]) -> str:
    return ", ".join(f"{each.pid} {each.command}" for each in processes[:5])


def _write(job: Job, done: _Done) -> None:
    """The freeze's own evidence, in the try's folder."""
    told = {
        "schema_version": 1,
        "asked": job.cell.task.freeze,
        "mode": done.mode,
        "because": done.because,
        "killed": [process._asdict() for process in done.killed],
        "survivors": [process._asdict() for process in done.survivors],
    }
    text = json.dumps(told, indent=2, sort_keys=True) + "\n"
    job.folder.write(FREEZE_FILE, text.encode(), job.secrets)


def _agent_exits(job: Job, provisioned: Provisioned) -> Mapping[str, int | None]:
    exits = {}
    for agent in provisioned.agents:
        path = job.folder.agent_logs / f"{agent.id}.exit.json"
        try:
            exits[agent.id] = _exit_code(read_guarded(path, EXIT_FILE_BYTES))
        except FileNotFoundError:
            continue
        except UnsafeFileError:
            exits[agent.id] = None
    return exits


def _exit_code(data: bytes) -> int | None:
    """The code as a shell gives it; the file was written inside the container, so it may lie."""
    try:
        told = json.loads(data)
    except (ValueError, RecursionError):
        return None
    if not isinstance(told, dict):
        return None
    code, signal = told.get("exit_code"), told.get("signal")
    if isinstance(signal, int) and not isinstance(signal, bool):
        return 128 + signal
    return code if isinstance(code, int) and not isinstance(code, bool) else None
