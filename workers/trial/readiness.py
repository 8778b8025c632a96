"""Whether the agents of a trial are ready: subscribed to its channel.

The trial's own relay sees it. Where it cannot (another's relay), and of the production stack in
any case, it is read from the agents' logs, as Buzz's own harness does: buzz-acp writes the line
when it has asked for its channel, and the reference agent writes the same one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

from workers.container.interface import Container, ContainerError, ExitState
from workers.contract.outcome import Cause
from workers.trial.errors import PhaseError
from workers.trial.files import LogTail, UnsafeFileError, read_head_and_tail
from workers.trial.handoff import Agent, Job, Provisioned
from workers.trial.markers import READY_WORDS, is_ready

OUTPUT_S = 10.0
LOOK_S = 0.02
"""Between two looks at a log."""
LAST_BYTES = 600


async def wait_ready(
    job: Job, container: Container, provisioned: Provisioned, seconds: float
) -> None:
    """Waits until every agent is subscribed.

    Raises:
        PhaseError: ``agent_launch``: an agent or the container ended first; or
            ``readiness_timeout``.
    """
    by_log = job.sweep.agent == "buzz" or not provisioned.relay.sees_subscriptions
    waits: list[Coroutine[Any, Any, bool]] = [
        _by_log(job, agent, provisioned.channel_id)
        if by_log
        else provisioned.relay.wait_subscribed(
            agent.keypair.pubkey, provisioned.channel_id, seconds
        )
        for agent in provisioned.agents
    ]
    ready: asyncio.Future[list[bool]] = asyncio.gather(*waits)
    death = asyncio.ensure_future(container.ended(seconds))
    both: set[asyncio.Future[Any]] = {ready, death}
    try:
        await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED, timeout=seconds)
        if ready.done():
            if all(ready.result()):
                return
        elif death.done() and (death.exception() is not None or death.result() is not None):
            raise PhaseError(Cause.AGENT_LAUNCH, await last_words(container, death))
        raise PhaseError(Cause.READINESS_TIMEOUT, _late(job, provisioned))
    finally:
        for each in both:
            each.cancel()
        await asyncio.gather(*both, return_exceptions=True)


def _late(job: Job, provisioned: Provisioned) -> str:
    detail = f"clock launch_s of {job.launch_s:g} s: an agent did not subscribe"
    said = [f"{agent.id} said {_said(job, agent)!r}" for agent in provisioned.agents]
    return "; ".join((detail, *said))


async def _by_log(job: Job, agent: Agent, channel_id: str) -> bool:
    """Returns when an agent's log says that it has subscribed, in either of its two.

    Raises:
        PhaseError: ``agent_launch``: it ended before, or a log cannot be read.
    """
    logs = job.folder.agent_logs
    tails = [
        LogTail(logs / f"{agent.id}.{stream}.log", words=READY_WORDS)
        for stream in ("stdout", "stderr")
    ]
    while True:
        # Looked for first: what an agent said before it ended has been written by then.
        ended = (logs / f"{agent.id}.exit.json").exists()
        try:
            for tail in tails:
                if any(is_ready(line, channel_id) for line in tail.lines()):
                    return True
        except UnsafeFileError as error:
            raise PhaseError(Cause.AGENT_LAUNCH, f"agent log: {error}") from error
        if ended and not any(tail.behind for tail in tails):
            detail = f"agent {agent.id} ended before it was ready: {_said(job, agent)}"
            raise PhaseError(Cause.AGENT_LAUNCH, detail)
        await asyncio.sleep(LOOK_S)


def _said(job: Job, agent: Agent) -> str:
    """The last that an agent wrote: on standard error, else on standard output."""
    for stream in ("stderr", "stdout"):
        if said := _tail_of(job.folder.agent_logs / f"{agent.id}.{stream}.log"):
            return said
    return ""


def _tail_of(path: Path) -> str:
    try:
        data = read_head_and_tail(path, 2 * LAST_BYTES).data
    except (FileNotFoundError, UnsafeFileError):
        return ""
    return data.decode("utf-8", "replace").strip()[-LAST_BYTES:]


async def last_words(container: Container, death: asyncio.Future[ExitState | None]) -> str:
    """How a container ended that should have run, and what it said."""
    try:
        state = death.result()
        said = (await container.output(OUTPUT_S)).strip()
    except ContainerError as error:
        return f"before its agents were ready: {error}"
    code = state.exit_code if state else None
    return f"the container ended with {code} before its agents were ready: {said[-LAST_BYTES:]}"
