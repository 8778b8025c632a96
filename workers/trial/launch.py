"""Phase 3, launch: Prepared and Provisioned -> Launched. The agents run and are subscribed.

Relay and gateway are reached on the container's own loopback: the sockets are opened inside its
network namespace and served from this process, so a sealed container has no network at all. The
agent starts before they listen and tries again every few milliseconds.
"""

from __future__ import annotations

import asyncio
import json
import time
from contextlib import AsyncExitStack
from typing import Any

from workers.container.disk import MIB
from workers.container.interface import (
    Container,
    ContainerError,
    ContainerSpec,
    ExitState,
    Mount,
)
from workers.contract.outcome import Cause
from workers.trial.errors import PhaseError, deadline
from workers.trial.handoff import (
    AGENTS_VARIABLE,
    BYTECODE_VARIABLE,
    GATEWAY_PORT,
    LIB_VARIABLE,
    LIMIT_VARIABLE,
    RELAY_PORT,
    STAY_VARIABLE,
    Agent,
    Job,
    Launched,
    Prepared,
    Provisioned,
    Tools,
)

LIB = "/opt/apiary/lib"
PROMPTS = "/opt/apiary/prompts"
LOGS = "/logs"
AGENT_LOGS = "/logs/agents"
VERIFIER_LOGS = "/logs/verifier"
TESTS = "/tests"
AGENT_COMMAND = ("python3", "-s", "-m", "workers.agent")
OUTPUT_S = 10.0
DEATH_S = 5.0
"""Until the end of a container whose sockets cannot be opened is known."""
GRACE_S = 120.0
"""Added to the clocks of a trial for the container's own time limit and its label."""


async def launch(
    job: Job, prepared: Prepared, provisioned: Provisioned, tools: Tools, stack: AsyncExitStack
) -> Launched:
    """Starts the container with its agents and waits until each is subscribed.

    Raises:
        PhaseError: ``container_start``, ``agent_launch`` or ``readiness_timeout``.
    """
    limits = job.sweep.limits
    async with deadline("launch_s", job.launch_s, Cause.CONTAINER_START) as clock:
        _write_prompts(job, provisioned)
        try:
            container = await tools.engine.start(
                container_spec(job, prepared, provisioned, tools.node), job.launch_s
            )
        except ContainerError as error:
            raise PhaseError(Cause.CONTAINER_START, str(error)) from error
        stack.push_async_callback(container.remove, limits.teardown_s)
        clock.cause = Cause.READINESS_TIMEOUT
        await _serve(container, provisioned)
        await _subscribed(container, provisioned, job.launch_s)
        return await _launched(job, container, job.launch_s)


async def _launched(job: Job, container: Container, seconds: float) -> Launched:
    """Notes which processes are the agents, where the freeze has to tell them from others.

    Nothing else runs yet: they have not been told anything.
    """
    if job.cell.task.freeze != "agent":
        return Launched(container)
    try:
        found = await container.processes(seconds)
    except ContainerError as error:
        raise PhaseError(Cause.AGENT_LAUNCH, str(error)) from error
    pids = {process.pid for process in found}
    first = next(process.pid for process in found if process.parent not in pids)
    agents = frozenset(process.pid for process in found if process.parent == first)
    return Launched(container, first, agents)


async def _serve(container: Container, provisioned: Provisioned) -> None:
    try:
        await provisioned.relay.serve(await asyncio.to_thread(container.listen, RELAY_PORT))
        await provisioned.gateway.serve(await asyncio.to_thread(container.listen, GATEWAY_PORT))
    except (ContainerError, OSError) as error:
        # Where it ended at once, its process is gone before the event of its end is here.
        death = asyncio.ensure_future(container.ended(DEATH_S))
        await asyncio.wait([death])
        if death.exception() is not None or death.result() is not None:
            words = await _last_words(container, death)
            raise PhaseError(Cause.AGENT_LAUNCH, words) from error
        raise PhaseError(Cause.CONTAINER_START, f"loopback sockets: {error}") from error


async def _subscribed(container: Container, provisioned: Provisioned, seconds: float) -> None:
    waits = [
        asyncio.ensure_future(
            provisioned.relay.wait_subscribed(agent.keypair.pubkey, provisioned.channel_id, seconds)
        )
        for agent in provisioned.agents
    ]
    ready: asyncio.Future[list[bool]] = asyncio.gather(*waits)
    death = asyncio.ensure_future(container.ended(seconds))
    both: set[asyncio.Future[Any]] = {ready, death}
    try:
        await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        if not ready.done():
            raise PhaseError(Cause.AGENT_LAUNCH, await _last_words(container, death))
        if not all(ready.result()):
            raise PhaseError(
                Cause.READINESS_TIMEOUT, f"an agent did not subscribe within {seconds:g} s"
            )
    finally:
        for wait in (*waits, death):
            wait.cancel()
        await asyncio.gather(ready, death, return_exceptions=True)


async def _last_words(container: Container, death: asyncio.Future[ExitState | None]) -> str:
    """How a container ended that should have run, and what it said."""
    try:
        state = death.result()
        said = (await container.output(OUTPUT_S)).strip()
    except ContainerError as error:
        return f"before its agents were ready: {error}"
    code = state.exit_code if state else None
    return f"the container ended with {code} before its agents were ready: {said[-600:]}"


def container_spec(
    job: Job, prepared: Prepared, provisioned: Provisioned, node: str
) -> ContainerSpec:
    """What to start: one container with every agent of the roster in it."""
    environment = job.cell.task.config.environment
    override = job.cell.condition.environment
    limit_s = int(_time_limit_s(job))
    by_evidence = job.cell.task.freeze == "evidence"
    sealed = job.sweep.network == "sealed" or environment.network_mode == "none"
    return ContainerSpec(
        image=prepared.image,
        command=AGENT_COMMAND,
        labels={
            **job.labels,
            "apiary.node": node,
            "apiary.expires": str(int(time.time()) + limit_s + int(GRACE_S)),
        },
        environment={
            LIB_VARIABLE: LIB,
            BYTECODE_VARIABLE: "1",
            LIMIT_VARIABLE: str(limit_s),
            **({} if by_evidence else {**environment.env, STAY_VARIABLE: "1"}),
            AGENTS_VARIABLE: json.dumps(
                [agent_environment(job, provisioned, agent) for agent in provisioned.agents]
            ),
        },
        mounts=(
            *prepared.agent_mounts,
            Mount(job.folder.prompts, PROMPTS),
            Mount(job.folder.agent_logs, AGENT_LOGS, read_only=False),
            *(() if by_evidence else state_mounts(job)),
        ),
        harden=by_evidence,
        network="none" if sealed else "public",
        cpus=(override and override.override_cpus) or environment.cpus,
        memory_mb=(override and override.override_memory_mb) or environment.memory_mb,
        storage_mb=job.storage_bytes // MIB,
        workdir=environment.workdir or "",
    )


def state_mounts(job: Job) -> tuple[Mount, ...]:
    """What the tests will need, in place before the agents start.

    Neither a mount's root nor what is below a read-only one can be renamed inside, so tests and
    reward will be where the harness looks, whatever the agents do. What they write into the
    verifier's folder is taken away when they are dead.
    """
    return (
        Mount(job.folder.logs, LOGS),
        Mount(job.folder.verifier_logs, VERIFIER_LOGS, read_only=False),
        Mount(job.folder.tests, TESTS),
    )


def _time_limit_s(job: Job) -> float:
    limits, task = job.sweep.limits, job.cell.task
    agents_s = job.launch_s + job.agent_timeout_s + GRACE_S
    if task.freeze == "evidence":
        return agents_s
    return agents_s + limits.freeze_s + limits.collect_s + task.config.verifier.timeout_sec


def agent_environment(job: Job, provisioned: Provisioned, agent: Agent) -> dict[str, str]:
    """One agent's environment, named as the Buzz stack names it; it holds the agent's key."""
    fixture = job.cell.task.fixture
    endpoint = job.sweep.endpoints[agent.entry.endpoint]
    generation = agent.entry.generation
    pinned: dict[str, str | int | None] = {
        "BUZZ_AGENT_MAX_OUTPUT_TOKENS": generation.max_output_tokens,
        "BUZZ_AGENT_MAX_CONTEXT_TOKENS": generation.context_window_tokens,
        "BUZZ_AGENT_HANDOFF_PERCENT": generation.compact_at_percent,
        "BUZZ_AGENT_HANDOFF_AT_TOKENS": generation.compact_at_tokens,
        "BUZZ_AGENT_THINKING_EFFORT": generation.thinking_effort or "medium",
    }
    if agent.entry.include_platform_prompt is False:
        pinned["BUZZ_ACP_NO_BASE_PROMPT"] = "true"
    return {
        **endpoint.env,
        "APIARY_AGENT_ID": agent.id,
        "BUZZ_RELAY_URL": f"ws://localhost:{RELAY_PORT}",
        "BUZZ_PRIVATE_KEY": agent.keypair.secret_hex,
        "BUZZ_AUTH_TAG": agent.attestation.to_text(),
        "BUZZ_ACP_CHANNELS": provisioned.channel_id,
        "BUZZ_ACP_SUBSCRIBE": "mentions",
        "BUZZ_ACP_RESPOND_TO": "anyone",
        "BUZZ_ACP_NO_MEMORY": "true" if fixture and fixture.disable_memory_injection else "false",
        "BUZZ_ACP_SYSTEM_PROMPT_FILE": f"{PROMPTS}/{agent.id}.system-prompt.md",
        "BUZZ_AGENT_PROVIDER": endpoint.provider,
        "BUZZ_AGENT_MODEL": endpoint.model or agent.entry.endpoint,
        "BUZZ_AGENT_MAX_ROUNDS": str(agent.entry.budget.max_calls or 0),
        "BUZZ_AGENT_NO_HINTS": "1",
        "APIARY_GATEWAY_URL": f"http://localhost:{GATEWAY_PORT}",
        "APIARY_GATEWAY_TOKEN": provisioned.gateway.tokens[agent.id],
        "APIARY_DIALECT": endpoint.dialect,
        **{name: str(value) for name, value in pinned.items() if value is not None},
    }


def _write_prompts(job: Job, provisioned: Provisioned) -> None:
    for agent in provisioned.agents:
        text = system_prompt(job.cell.prompts[agent.entry.prompt.sha256], agent, provisioned)
        path = job.folder.prompts / f"{agent.id}.system-prompt.md"
        path.write_text(text, encoding="utf-8")
        path.chmod(0o644)


def system_prompt(persona: str, agent: Agent, provisioned: Provisioned) -> str:
    """The persona and a section on the team: own key, channel, user, teammates."""
    user = provisioned.user
    rows = [
        f"| {mate.id} | {mate.entry.role} | {mate.keypair.pubkey} |"
        for mate in provisioned.agents
        if mate.id != agent.id
    ]
    return "\n".join(
        [
            persona.rstrip("\n"),
            "",
            "## Your team",
            "",
            f"You are {agent.id}; your public key is {agent.keypair.pubkey}.",
            f"The channel is {provisioned.channel_id}.",
            f"The user is {user.name}; their public key is {user.keypair.pubkey}.",
            "",
            "| Name | Role | Pubkey |",
            "|---|---|---|",
            *rows,
            "",
        ]
    )
