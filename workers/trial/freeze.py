"""Phase 5, freeze: Launched -> Frozen. The agents are dead, and it is proved.

Tasks graded by evidence: the container is killed, and the proof is that it does not run. The OOM
counter is read before, since it dies with the container.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from workers.container.interface import ContainerError, ContainerLostError
from workers.contract.outcome import Cause
from workers.trial.errors import PhaseError, deadline
from workers.trial.files import UnsafeFileError, read_guarded
from workers.trial.handoff import Frozen, Job, Launched, Provisioned

EXIT_FILE_BYTES = 4096


async def freeze(job: Job, provisioned: Provisioned, launched: Launched) -> Frozen:
    """Kills the container.

    Raises:
        PhaseError: ``freeze_failed``: its death could not be proved in time; or
            ``container_lost``: somebody else had removed it.
    """
    seconds = job.sweep.limits.freeze_s
    container = launched.container
    exits = _agent_exits(job, provisioned)
    oom_events = container.oom_events()
    async with deadline("freeze_s", seconds, Cause.FREEZE_FAILED):
        try:
            state = await container.kill(seconds)
        except ContainerLostError as error:
            raise PhaseError(Cause.CONTAINER_LOST, str(error)) from error
        except ContainerError as error:
            raise PhaseError(Cause.FREEZE_FAILED, str(error)) from error
    return Frozen(
        exit_state=state,
        oom_events=max(oom_events, container.oom_events()),
        agent_exits=exits,
    )


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
    except ValueError:
        return None
    if not isinstance(told, dict):
        return None
    code, signal = told.get("exit_code"), told.get("signal")
    if isinstance(signal, int) and not isinstance(signal, bool):
        return 128 + signal
    return code if isinstance(code, int) else None
