"""Phase 2, provision: Job -> Provisioned. Relay, keys, channel, directory, memories, tokens.

Agents' keys are fresh for every try. The owner's is a deployment's member, else fresh too; a named
user and the directory are derived from the owner. Every identity, the user included, holds the
owner's attestation and publishes its profile with it.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass

from workers.contract.condition import RosterEntry
from workers.contract.evidence import DirectoryRow
from workers.contract.outcome import Cause
from workers.contract.task import Fixture, Task
from workers.gateway import AgentAccess, GatewayError, GatewayTrial
from workers.nostr.attestation import attest
from workers.nostr.errors import EngramError
from workers.nostr.keys import Keypair, derive_identity
from workers.relay import (
    EmbeddedRelay,
    RelayClient,
    RelayError,
    RelayRefusedError,
    TrialRelay,
)
from workers.trial.errors import PhaseError, cause_of_relay, deadline
from workers.trial.facts import Facts
from workers.trial.handoff import EMBEDDED_HOST, Agent, Job, Member, Provisioned, Tools
from workers.trial.relay_side import archiving, note_seen, open_deployment, owner_of

NO_FIXTURE = Fixture(requires_evidence=False)
DEFAULT_USER = "user"


@dataclass(frozen=True)
class _Identities:
    owner: Keypair
    user: Member
    agents: tuple[Agent, ...]
    directory: Mapping[str, Member]


async def provision(job: Job, tools: Tools, stack: AsyncExitStack, facts: Facts) -> Provisioned:
    """Sets up everything that a trial needs outside its container.

    Args:
        job: the trial.
        tools: of the node.
        stack: ends what is opened.
        facts: a deployment's relay is noted there.

    Raises:
        PhaseError: ``relay_unavailable``, ``provision_failed``, ``seed_failed`` or
            ``clock_skew``.
    """
    seconds = job.sweep.limits.provision_s
    async with deadline("provision_s", seconds, Cause.PROVISION_FAILED):
        identities = make_identities(job, owner_of(job, tools))
        relay = await _relay(job, tools, stack, identities.owner, facts)
        opened_s = time.monotonic()
        gateway = await _gateway(job, tools, stack)
        try:
            client = await stack.enter_async_context(relay.client(identities.user))
            if job.sweep.relay != "embedded":
                await note_seen(job.sweep.relay, client, facts)
            created = _when_created(job, client, stack, facts)
            channel_id = await _channel(job, client, identities, relay, created)
            await relay.watch(identities.user, channel_id)
        except RelayError as error:
            cause = cause_of_relay(error, Cause.PROVISION_FAILED)
            raise PhaseError(cause, str(error)) from error
        await _seed_memories(job, identities.agents[0], relay)
    return Provisioned(
        relay=relay,
        gateway=gateway,
        opened_s=opened_s,
        channel_id=channel_id,
        user=identities.user,
        user_client=client,
        agents=identities.agents,
        directory=directory_rows(job.cell.task, identities.directory),
        actors=identities.directory,
    )


def make_identities(job: Job, owner: Keypair) -> _Identities:
    """Draws and derives every key of the trial, and notes each as a secret."""
    task = job.cell.task
    fixture = task.fixture or NO_FIXTURE
    name = fixture.user_display_name
    user_keys = (
        derive_identity(owner, f"task-user:{task.bare_name}") if name else Keypair.generate()
    )
    user = Member(name or DEFAULT_USER, user_keys, attest(owner, user_keys.pubkey))
    agents = tuple(_agent(agent_id, entry, owner) for agent_id, entry in job.cell.condition.agents)
    directory = {}
    for row in fixture.entries:
        keys = derive_identity(owner, row.key_id)
        directory[row.key_id] = Member(row.name, keys, attest(owner, keys.pubkey))
    _note_secrets(job, owner, [user, *directory.values()], agents)
    return _Identities(owner, user, agents, directory)


def _agent(agent_id: str, entry: RosterEntry, owner: Keypair) -> Agent:
    keys = Keypair.generate()
    return Agent(agent_id, entry, keys, attest(owner, keys.pubkey))


def _note_secrets(
    job: Job, owner: Keypair, members: list[Member], agents: tuple[Agent, ...]
) -> None:
    job.secrets.add_key(owner.secret_hex, owner.nsec)
    holders: list[Member | Agent] = [*members, *agents]
    for holder in holders:
        job.secrets.add_key(holder.keypair.secret_hex, holder.keypair.nsec)
        job.secrets.add_attestation(holder.attestation.sig)


async def _relay(
    job: Job, tools: Tools, stack: AsyncExitStack, owner: Keypair, facts: Facts
) -> TrialRelay:
    if job.sweep.relay != "embedded":
        return open_deployment(job, job.sweep.relay, tools, stack, facts)
    relay = EmbeddedRelay(owner_pubkey=owner.pubkey, host=EMBEDDED_HOST, observe=tools.relay_event)
    tools.relays.add(relay)
    stack.callback(tools.relays.discard, relay)
    stack.push_async_callback(relay.close)
    socket = tools.sockets / f"{job.lease.attempt[:12]}-{job.try_}.sock"
    try:
        await relay.serve_unix(socket)
    except OSError as error:
        raise PhaseError(Cause.RELAY_UNAVAILABLE, f"relay socket: {error.strerror}") from error
    stack.callback(socket.unlink, missing_ok=True)
    return relay


async def _gateway(job: Job, tools: Tools, stack: AsyncExitStack) -> GatewayTrial:
    condition = job.cell.condition
    access = [
        AgentAccess(
            agent=agent_id,
            endpoint=entry.endpoint,
            prices=condition.prices[entry.endpoint],
            budget=entry.budget,
        )
        for agent_id, entry in condition.agents
    ]
    try:
        trial = await tools.gateway.open_trial(
            access,
            job.folder.ledger,
            trial_max_cost_usd=condition.trial_budget.max_cost_usd,
            try_=f"{job.lease.attempt}/{job.try_}",
        )
    except GatewayError as error:
        raise PhaseError(Cause.PROVISION_FAILED, str(error)) from error
    stack.push_async_callback(trial.close)
    for token in trial.tokens.values():
        job.secrets.add_token(token)
    return trial


def _when_created(
    job: Job, client: RelayClient, stack: AsyncExitStack, facts: Facts
) -> Callable[[str], None]:
    """What is done as soon as the channel is there, whatever becomes of the rest."""

    def created(channel_id: str) -> None:
        if job.sweep.relay != "embedded":
            stack.push_async_callback(archiving(job.sweep.relay, client, channel_id, facts))

    return created


async def _channel(
    job: Job,
    client: RelayClient,
    identities: _Identities,
    relay: TrialRelay,
    created: Callable[[str], None],
) -> str:
    """Profiles first, then the channel and its members one after another.

    Member commands on one channel are last-write-wins for the roster, so they never overlap.
    """
    task = job.cell.task
    fixture = task.fixture or NO_FIXTURE
    await client.set_profile(identities.user.name)
    for agent in identities.agents:
        async with relay.client(agent) as own:
            await own.set_profile(agent.id)
    for row in fixture.entries:
        async with relay.client(identities.directory[row.key_id]) as own:
            await own.set_profile(row.name, about=row.about or None)
    label = f"{task.bare_name}-{job.lease.attempt[:8]}"
    channel_id = str(uuid.uuid4())
    try:
        await client.create_channel(
            label,
            about=f"run={job.sweep.sweep} trial={job.lease.attempt}/{job.try_} "
            f"manifest={job.cell.condition.digest}",
            channel=channel_id,
        )
    except RelayRefusedError:
        raise
    except BaseException:
        created(channel_id)  # the answer may be lost, and the channel there
        raise
    created(channel_id)
    for agent in identities.agents:
        await client.add_member(channel_id, agent.keypair.pubkey, "member")
    for row in fixture.entries:
        if row.channel_member:
            role = "bot" if row.role == "bot" else "member"
            keys = identities.directory[row.key_id].keypair
            await client.add_member(channel_id, keys.pubkey, role)
    return channel_id


async def _seed_memories(job: Job, orchestrator: Agent, relay: TrialRelay) -> None:
    fixture = job.cell.task.fixture or NO_FIXTURE
    if not fixture.memories:
        return
    async with relay.client(orchestrator) as client:
        for seed in fixture.memories:
            try:
                await client.write_memory(seed.slug, seed.value)
            except EngramError as error:
                raise PhaseError(Cause.SEED_FAILED, f"memory {seed.slug}: {error}") from error
            except RelayError as error:
                cause = cause_of_relay(error, Cause.SEED_FAILED)
                raise PhaseError(cause, f"memory {seed.slug}: {error}") from error


def directory_rows(task: Task, members: Mapping[str, Member]) -> tuple[DirectoryRow, ...]:
    """The directory as evidence shows it."""
    fixture = task.fixture or NO_FIXTURE
    return tuple(
        DirectoryRow(
            identity_id=row.key_id,
            name=row.name,
            role=row.role,
            pubkey=members[row.key_id].keypair.pubkey,
            about=row.about,
        )
        for row in fixture.entries
    )
