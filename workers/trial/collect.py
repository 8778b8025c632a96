"""Phase 6, collect: Provisioned and Driven -> Collected. The whole channel, ledger and logs.

It needs nothing of the container but the log folder, so it also runs for a trial that failed
later than its provisioning.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Sequence

from workers.contract import agent_logs
from workers.contract.base import FormatError, sha256_hex
from workers.contract.evidence import (
    MESSAGE_KINDS,
    ChannelMember,
    Evidence,
    Identity,
    Message,
    ObservedChannel,
    TrialRef,
    channel_of,
    mentioned,
    reply_target,
)
from workers.contract.outcome import Cause
from workers.gateway import GatewayError
from workers.nostr.event import Event
from workers.relay import RelayError
from workers.trial.errors import PhaseError, cause_of_relay, deadline, is_disk_full
from workers.trial.files import read_log
from workers.trial.handoff import Collected, Driven, Job, Provisioned
from workers.trial.soundness import unsound_because

EVIDENCE_FILE = "evidence.json"
EVIDENCE_ERROR_FILE = "buzz/buzz-evidence-error.txt"


async def collect(job: Job, provisioned: Provisioned, driven: Driven) -> Collected:
    """Reads what happened and writes it to the trial's folder.

    Raises:
        PhaseError: ``evidence_export``: channel or ledger could not be read, or the evidence not
            written; ``relay_unavailable``, ``clock_skew`` or ``disk_full`` where that is why.
    """
    async with deadline("collect_s", job.sweep.limits.collect_s, Cause.EVIDENCE_EXPORT):
        try:
            messages = await provisioned.user_client.read_channel(
                provisioned.channel_id, kinds=MESSAGE_KINDS
            )
            observed = await _observed(job, provisioned)
            await provisioned.gateway.close()
        except RelayError as error:
            cause = cause_of_relay(error, Cause.EVIDENCE_EXPORT)
            raise PhaseError(cause, str(error)) from error
        except GatewayError as error:
            cause = Cause.DISK_FULL if is_disk_full(error) else Cause.EVIDENCE_EXPORT
            raise PhaseError(cause, str(error)) from error
        timeline = provisioned.relay.timeline()
        _check_heard(provisioned, messages)

    def written() -> Collected:
        ours = [event for event in in_order(messages, timeline) if _is_in(event, provisioned)]
        evidence = make_evidence(job, provisioned, driven, ours, observed)
        return _write(job, provisioned, evidence)

    # An agent that filled its channel makes this seconds long: the node's other trials go on.
    try:
        return await asyncio.to_thread(written)
    except OSError as error:
        cause = Cause.DISK_FULL if is_disk_full(error) else Cause.EVIDENCE_EXPORT
        raise PhaseError(cause, f"evidence: {error}") from error


def _check_heard(provisioned: Provisioned, messages: Sequence[Event]) -> None:
    """A reply that was never heard is no model's fault if its relay was away meanwhile.

    Raises:
        PhaseError: ``relay_unavailable``.
    """
    orchestrator, relay = provisioned.orchestrator.keypair.pubkey, provisioned.relay
    if relay.outages and not any(event.pubkey == orchestrator for event in messages):
        why = f"no word of the orchestrator, and connections to the relay failed {relay.outages} ×"
        raise PhaseError(Cause.RELAY_UNAVAILABLE, why)


def _is_in(event: Event, provisioned: Provisioned) -> bool:
    """Whether the channel is an event's own.

    A relay also finds an event by further ``h`` tags. An agent can put this channel's on a
    message of another one, and that must not make the evidence contradict itself.
    """
    return channel_of(signed_tags(event)) == provisioned.channel_id


def _write(job: Job, provisioned: Provisioned, evidence: Evidence) -> Collected:
    """Writes the evidence and judges it; blocks."""
    data = evidence_bytes(evidence)
    job.folder.write(EVIDENCE_FILE, data, job.secrets)
    unsound = _soundness(job, job.secrets.strike(data))
    if unsound:
        job.folder.write(EVIDENCE_ERROR_FILE, f"{unsound}\n".encode(), job.secrets)
    return Collected(
        evidence=evidence,
        evidence_digest=sha256_hex(job.secrets.strike(data)),
        ledger=provisioned.gateway.lines(),
        unsound=unsound,
    )


def _soundness(job: Job, data: bytes) -> str:
    """Judged on what a reader of the file gets, not on what is in memory."""
    try:
        read = Evidence.from_json(data, EVIDENCE_FILE)
    except FormatError as error:
        return str(error)
    return unsound_because(read, job.cell.task.bare_name, job.cell.task.fixture)


def in_order(messages: Iterable[Event], timeline: Sequence[Event]) -> list[Event]:
    """Messages in the order in which the relay accepted them, as far as that was seen.

    ``created_at`` has seconds: a reply within its root's second could else come before it. One
    that a deployment did not show in time goes by that, but never before what it answers.
    """
    place = {event.id: number for number, event in enumerate(timeline)}
    seen: list[Event] = []
    unseen: list[Event] = []
    for event in messages:
        (seen if event.id in place else unseen).append(event)
    # What came while the harness was not connected was seen by its time and id only.
    seen = _roots_first(sorted(seen, key=lambda event: place[event.id]))
    if not unseen:
        return seen
    unseen.sort(key=lambda event: (event.created_at, event.id), reverse=True)
    ordered = []
    for event in seen:
        while unseen and unseen[-1].created_at < event.created_at:
            ordered.append(unseen.pop())
        ordered.append(event)
    return _roots_first([*ordered, *reversed(unseen)])


def _roots_first(messages: Sequence[Event]) -> list[Event]:
    """The same order, but each message behind the one that it answers."""
    known = {event.id: event for event in messages}
    placed: dict[str, Event] = {}
    for event in messages:
        waiting: dict[str, Event] = {}
        each: Event | None = event
        while each is not None and each.id not in placed and each.id not in waiting:
            waiting[each.id] = each
            each = known.get(reply_target(signed_tags(each)) or "")
        placed.update((each.id, each) for each in reversed(waiting.values()))
    return list(placed.values())


def signed_tags(event: Event) -> tuple[tuple[str, ...], ...]:
    """An event's tags as signed, less attestations."""
    return tuple(tuple(tag) for tag in event.tags if tag and tag[0] != "auth")


def make_evidence(
    job: Job,
    provisioned: Provisioned,
    driven: Driven,
    messages: Sequence[Event],
    observed: tuple[ObservedChannel, ...],
) -> Evidence:
    """Evidence version 1 of a trial."""
    authors = names_by_key(provisioned)
    return Evidence(
        trial=TrialRef(
            run_id=job.sweep.sweep,
            trial_id=f"{job.lease.attempt}/{job.try_}",
            channel_id=provisioned.channel_id,
        ),
        task_event_id=driven.task_event.id,
        completion_message_id=driven.completion_message_id
        or _last_by(messages, provisioned.orchestrator.keypair.pubkey),
        task_name=job.cell.task.bare_name,
        identities=identities_of(provisioned),
        directory=provisioned.directory,
        scripted_events=driven.scripted,
        observed_channels=observed,
        message_count=len(messages),
        truncated=False,
        messages=tuple(message_of(event, authors) for event in messages),
    )


def identities_of(provisioned: Provisioned) -> dict[str, Identity]:
    """The user and the agents by name."""
    user = provisioned.user
    return {
        user.name: Identity(role="user", pubkey=user.keypair.pubkey),
        **{
            agent.id: Identity(role=agent.entry.kind, pubkey=agent.keypair.pubkey)
            for agent in provisioned.agents
        },
    }


def names_by_key(provisioned: Provisioned) -> dict[str, tuple[str, str]]:
    """Key to (name, role); the directory's names come before the roster's, as in Buzz."""
    known = {
        identity.pubkey: (name, str(identity.role))
        for name, identity in identities_of(provisioned).items()
    }
    known.update({row.pubkey: (row.name, str(row.role)) for row in provisioned.directory})
    return known


def message_of(event: Event, authors: dict[str, tuple[str, str]]) -> Message:
    """A message as evidence has it."""
    tags = signed_tags(event)
    name, role = authors.get(event.pubkey, ("unknown", "unknown"))
    return Message(
        id=event.id,
        kind=event.kind,
        created_at=event.created_at,
        pubkey=event.pubkey,
        author=name,
        author_role=role,
        content=event.content,
        tags=tags,
        channel_id=channel_of(tags),
        reply_to_event_id=reply_target(tags),
        mentioned_pubkeys=mentioned(tags),
    )


def _last_by(messages: Sequence[Event], pubkey: str) -> str | None:
    return next((event.id for event in reversed(messages) if event.pubkey == pubkey), None)


async def _observed(job: Job, provisioned: Provisioned) -> tuple[ObservedChannel, ...]:
    """The fixture's channels as the orchestrator sees them: they may be private to it."""
    fixture = job.cell.task.fixture
    if not fixture or not fixture.observe_channel_names:
        return ()
    rows = []
    own = {each.pubkey for each in identities_of(provisioned).values()}
    async with provisioned.relay.client(provisioned.orchestrator) as client:
        for name in fixture.observe_channel_names:
            for channel in await client.find_channels(name):
                members = await client.members(channel.channel_id)
                if provisioned.relay.is_shared and own.isdisjoint(each.pubkey for each in members):
                    continue  # an open channel that another trial left in the deployment
                rows.append(
                    ObservedChannel(
                        channel_id=channel.channel_id,
                        name=channel.name,
                        channel_type=channel.channel_type,
                        visibility=channel.visibility,
                        ttl_seconds=channel.ttl_seconds,
                        archived=channel.archived,
                        members=tuple(ChannelMember(pubkey=m.pubkey, role=m.role) for m in members),
                    )
                )
    return tuple(rows)


def evidence_bytes(evidence: Evidence) -> bytes:
    """The file's bytes: indent 2, sorted keys, trailing newline (Buzz evidence snapshot)."""
    data = evidence.model_dump(mode="json")
    # A lone surrogate in a message cannot be UTF-8; as an escape it is kept and stays readable.
    return (json.dumps(data, indent=2, sort_keys=True, ensure_ascii=True) + "\n").encode()


def timeline_bytes(timeline: Iterable[Event]) -> bytes:
    """The signed timeline, one event a line, attestations left out."""
    lines = []
    for event in timeline:
        row = event.to_dict()
        row["tags"] = signed_tags(event)
        lines.append(json.dumps(row, sort_keys=True, ensure_ascii=True))
    return "".join(f"{line}\n" for line in lines).encode()


def keep_trail(job: Job, provisioned: Provisioned) -> dict[str, int]:
    """Keeps the signed timeline and the agents' logs, however far the trial came.

    Returns:
        Logs that were cut, by name, and how many bytes are missing in each.
    """
    timeline = timeline_bytes(provisioned.relay.timeline())
    job.folder.write("relay-events.jsonl", timeline, job.secrets)
    logs, dropped = {}, {}
    for agent in provisioned.agents:
        for suffix in ("stdout.log", "stderr.log", "exit.json"):
            name = f"{agent.id}.{suffix}"
            kept = read_log(job.folder.agent_logs / name, job.sweep.limits.log_bytes)
            if kept.data:
                logs[name] = kept.data
            if kept.dropped:
                dropped[agent_logs.FOLDER + name] = kept.dropped
    if len(logs) > agent_logs.MOST_FILES:
        # Before they are packed: what is struck out changes a log's length.
        struck = {name: job.secrets.strike(data) for name, data in logs.items()}
        job.folder.write(agent_logs.ARCHIVE, agent_logs.pack(struck), job.secrets)
        return dropped
    for name, data in logs.items():
        job.folder.write(agent_logs.FOLDER + name, data, job.secrets)
    return dropped
