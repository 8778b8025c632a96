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
from dataclasses import dataclass

from workers.container.disk import MIB
from workers.container.interface import (
    Container,
    ContainerError,
    ContainerSpec,
    Mount,
)
from workers.contract.buzz import BuzzStack
from workers.contract.outcome import Cause
from workers.trial import buzz_environment
from workers.trial.buzz_environment import environment_of
from workers.trial.buzz_stack import SERVED, agents_text, first_command
from workers.trial.errors import PhaseError, deadline
from workers.trial.handoff import (
    AGENTS_VARIABLE,
    BYTECODE_VARIABLE,
    GATEWAY_PORT,
    LIB_VARIABLE,
    LIMIT_VARIABLE,
    STAY_VARIABLE,
    Agent,
    Job,
    Launched,
    Prepared,
    Provisioned,
    Tools,
)
from workers.trial.readiness import last_words, wait_ready

LIB = "/opt/apiary/lib"
PROMPTS = "/opt/apiary/prompts"
LOGS = "/logs"
AGENT_LOGS = "/logs/agents"
VERIFIER_LOGS = "/logs/verifier"
TESTS = "/tests"
AGENT_COMMAND = ("python3", "-s", "-m", "workers.agent")
RESERVE_S = 0.2
"""Of the launch's time, to tell who was not ready."""
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
    started = time.monotonic()
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
        (job.folder.prompts / SERVED).touch()
        left_s = job.launch_s - (time.monotonic() - started) - RESERVE_S
        await wait_ready(job, container, provisioned, left_s)
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
    # The production stack is several processes each; nothing but its own runs yet.
    agents = frozenset(
        process.pid
        for process in found
        if process.parent == first or (job.sweep.agent == "buzz" and process.pid != first)
    )
    return Launched(container, first, agents)


async def _serve(container: Container, provisioned: Provisioned) -> None:
    try:
        relay = provisioned.relay
        await relay.serve(await asyncio.to_thread(container.listen, relay.port))
        await provisioned.gateway.serve(await asyncio.to_thread(container.listen, GATEWAY_PORT))
    except (ContainerError, OSError) as error:
        # Where it ended at once, its process is gone before the event of its end is here.
        death = asyncio.ensure_future(container.ended(DEATH_S))
        await asyncio.wait([death])
        if death.exception() is not None or death.result() is not None:
            words = await last_words(container, death)
            raise PhaseError(Cause.AGENT_LAUNCH, words) from error
        raise PhaseError(Cause.CONTAINER_START, f"loopback sockets: {error}") from error


def container_spec(
    job: Job, prepared: Prepared, provisioned: Provisioned, node: str
) -> ContainerSpec:
    """What to start: one container with every agent of the roster in it."""
    environment = job.cell.task.config.environment
    override = job.cell.condition.environment
    limit_s = int(_time_limit_s(job))
    by_evidence = job.cell.task.freeze == "evidence"
    sealed = job.sweep.network == "sealed" or environment.network_mode == "none"
    stack = job.sweep.buzz
    runtime = (
        _reference(job, provisioned, limit_s)
        if stack is None
        else _buzz(job, stack, provisioned, limit_s)
    )
    return ContainerSpec(
        image=prepared.image,
        command=runtime.command,
        labels={
            **job.labels,
            "apiary.node": node,
            "apiary.expires": str(int(time.time()) + limit_s + int(GRACE_S)),
        },
        environment={**({} if by_evidence else environment.env), **runtime.environment},
        mounts=(
            *prepared.agent_mounts,
            Mount(job.folder.prompts, runtime.prompts),
            Mount(job.folder.agent_logs, AGENT_LOGS, read_only=False),
            *(() if by_evidence else state_mounts(job)),
        ),
        harden=by_evidence,
        network="none" if sealed else "public",
        hosts_file=job.folder.hosts,
        loopback_names=tuple(filter(None, (provisioned.relay.loopback_name,))),
        cpus=(override and override.override_cpus) or environment.cpus,
        memory_mb=(override and override.override_memory_mb) or environment.memory_mb,
        storage_mb=job.storage_bytes // MIB,
        workdir=environment.workdir or "",
    )


@dataclass(frozen=True)
class _Runtime:
    """What the kind of agent decides of its container."""

    command: tuple[str, ...]
    environment: dict[str, str]
    """Of the first process, which gives each agent its own."""
    prompts: str
    """Where the prompts are mounted."""


def _reference(job: Job, provisioned: Provisioned, limit_s: int) -> _Runtime:
    agents = [agent_environment(job, provisioned, agent) for agent in provisioned.agents]
    variables = {
        LIB_VARIABLE: LIB,
        BYTECODE_VARIABLE: "1",
        LIMIT_VARIABLE: str(limit_s),
        AGENTS_VARIABLE: json.dumps(agents),
    }
    if job.cell.task.freeze != "evidence":
        variables[STAY_VARIABLE] = "1"
    return _Runtime(AGENT_COMMAND, variables, PROMPTS)


def _buzz(job: Job, stack: BuzzStack, provisioned: Provisioned, limit_s: int) -> _Runtime:
    agents = [
        (
            agent.id,
            environment_of(
                agent,
                job.sweep.endpoints[agent.entry.endpoint],
                relay_url=provisioned.relay.url,
                channel_id=provisioned.channel_id,
                token=provisioned.gateway.tokens[agent.id],
                effort_default=stack.effort_default,
            ),
        )
        for agent in provisioned.agents
    ]
    variables = {AGENTS_VARIABLE: agents_text(agents)}
    return _Runtime(first_command(limit_s), variables, buzz_environment.PROMPTS)


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
        "BUZZ_RELAY_URL": provisioned.relay.url,
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
