"""Phase 4, drive: Launched -> Driven. The user speaks, the agents answer, somebody is done.

How it ends is a value, never an exception: a deadline or a dead agent is a fact to be judged.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass

from workers.container.interface import Container, ContainerError
from workers.contract.evidence import MESSAGE_KINDS, ScriptedEvent, channel_of
from workers.contract.outcome import Cause
from workers.nostr.event import Event
from workers.relay import RelayClient, RelayError
from workers.trial.disk_watch import DiskWatch
from workers.trial.errors import PhaseError, cause_of_relay, check_room
from workers.trial.files import LogTail, UnsafeFileError
from workers.trial.handoff import Driven, Ending, Job, Launched, Provisioned, Tools
from workers.trial.log_watch import Followed
from workers.trial.markers import MARKER_WORDS, TurnLog

LOOK_S = 1.0
"""Between two looks at what nobody wakes us for: relay, silence, the container's own disk."""
POST_S = 30.0
DONE_PREFIX = "DONE:"


@dataclass(frozen=True)
class _End:
    ending: Ending
    detail: str
    completion_message_id: str | None = None


async def drive(job: Job, tools: Tools, provisioned: Provisioned, launched: Launched) -> Driven:
    """Posts the task and its scripted messages, then waits for the end.

    Raises:
        PhaseError: ``relay_unavailable``: the user's messages could not be posted, or the relay
            ended; ``seed_failed`` or ``clock_skew``: it refused them; ``disk_full``.
    """
    try:
        async with asyncio.timeout(POST_S):
            task_event = await _post_task(job, provisioned)
            started = time.monotonic()
            scripted = await _post_scripted(job, provisioned, task_event)
    except TimeoutError as error:
        raise PhaseError(
            Cause.RELAY_UNAVAILABLE, f"task message: clock post of {POST_S:g} s fired"
        ) from error
    except RelayError as error:
        cause = cause_of_relay(error, Cause.SEED_FAILED)
        raise PhaseError(cause, f"task message: {error}") from error
    silence = _Silence(job.sweep.limits.silence_s, provisioned, started)
    orchestrator = provisioned.orchestrator.id
    log = job.folder.agent_logs / f"{orchestrator}.stdout.log"
    tail = LogTail(log, words=MARKER_WORDS)
    disk = DiskWatch(
        job.folder.agent_logs,
        launched.container.layer,
        job.storage_bytes,
        job.sweep.limits.log_bytes,
        tail,
        job.folder.verifier_logs,
    )
    with tools.logs.follow(job.folder.agent_logs) as logs:
        end = await _wait(job, provisioned, launched.container, scripted, silence, disk, tail, logs)
    if end.ending in (Ending.AGENT_EXITED, Ending.CONTAINER_ENDED, Ending.TURN_FAILED):
        # An agent that cannot write its log dies of it.
        check_room(job.folder.root)
    if end.ending in (Ending.AGENT_EXITED, Ending.CONTAINER_ENDED) and provisioned.relay.trouble:
        why = f"{end.detail} without its relay: {provisioned.relay.trouble}"
        raise PhaseError(Cause.RELAY_UNAVAILABLE, why)
    return Driven(
        task_event=task_event,
        scripted=scripted,
        ending=end.ending,
        detail=end.detail,
        completion_message_id=end.completion_message_id,
        started_s=started - provisioned.opened_s,
        seconds=time.monotonic() - started,
        silences=tuple(silence.noticed),
        layer_bytes=disk.layer_bytes,
    )


async def _post_task(job: Job, provisioned: Provisioned) -> Event:
    orchestrator = provisioned.orchestrator
    return await provisioned.user_client.send_message(
        provisioned.channel_id,
        f"@{orchestrator.id} {job.cell.task.instruction}",
        mentions=(orchestrator.keypair.pubkey,),
    )


async def _post_scripted(
    job: Job, provisioned: Provisioned, task_event: Event
) -> tuple[ScriptedEvent, ...]:
    fixture = job.cell.task.fixture
    orchestrator = provisioned.orchestrator
    posted = []
    for message in fixture.scripted_messages if fixture else ():
        content = message.content.replace("{orchestrator}", orchestrator.id).replace(
            "{user}", provisioned.user.name
        )
        reply_to = task_event.id if message.reply_to_task else None
        mentions = (orchestrator.keypair.pubkey,) if message.mention_orchestrator else ()
        async with _actor(provisioned, message.actor) as client:
            event = await client.send_message(
                provisioned.channel_id, content, mentions=mentions, reply_to=reply_to
            )
        posted.append(
            ScriptedEvent(
                label=message.label,
                event_id=event.id,
                actor=message.actor,
                reply_to_event_id=reply_to,
            )
        )
    return tuple(posted)


def _actor(provisioned: Provisioned, actor: str) -> RelayClient:
    member = provisioned.user if actor == "user" else provisioned.actors[actor]
    return provisioned.relay.client(member)


async def _wait(
    job: Job,
    provisioned: Provisioned,
    container: Container,
    scripted: Sequence[ScriptedEvent],
    silence: _Silence,
    disk: DiskWatch,
    tail: LogTail,
    logs: Followed,
) -> _End:
    seconds = job.agent_timeout_s
    watchers: list[asyncio.Future[_End | None]] = [
        asyncio.ensure_future(_container_ended(container, seconds)),
        asyncio.ensure_future(_disk(job, disk, logs)),
        asyncio.ensure_future(_turns(job, provisioned, tail, scripted, silence, logs)),
    ]
    if len(provisioned.agents) > 1 or not scripted:
        watchers.append(asyncio.ensure_future(_done(provisioned, seconds)))
    started = time.monotonic()
    try:
        finished, _ = await asyncio.wait(
            watchers, timeout=seconds, return_when=asyncio.FIRST_COMPLETED
        )
        ends = [watcher.result() for watcher in watchers if watcher in finished]
    finally:
        for watcher in watchers:
            watcher.cancel()
        await asyncio.gather(*watchers, return_exceptions=True)
    for end in ends:
        if end is not None:
            return end
    ran = time.monotonic() - started
    return _End(Ending.TIMEOUT, f"clock agent_timeout of {seconds:g} s fired after {ran:.1f} s")


async def _container_ended(container: Container, seconds: float) -> _End | None:
    try:
        state = await container.ended(seconds)
    except ContainerError as error:
        return _End(Ending.CONTAINER_ENDED, str(error))
    if state is None:
        return None
    return _End(Ending.CONTAINER_ENDED, f"the container ended with exit code {state.exit_code}")


async def _done(provisioned: Provisioned, seconds: float) -> _End | None:
    """A team is done when its orchestrator says so; a solo agent may say so too.

    Not one with scripted messages: it is done when it has heard them all.
    """
    orchestrator = provisioned.orchestrator.keypair.pubkey
    event = await provisioned.relay.wait_event(
        lambda event: (
            event.pubkey == orchestrator
            and event.kind in MESSAGE_KINDS
            and channel_of(event.tags) == provisioned.channel_id
            and event.content.startswith(DONE_PREFIX)
        ),
        seconds,
    )
    if event is None:
        return None
    return _End(Ending.DONE, "the orchestrator said DONE", event.id)


async def _disk(job: Job, disk: DiskWatch, logs: Followed) -> _End:
    """Ends with the agents' share of the node's disk, or with the disk itself."""
    somebody_writes = False
    while True:
        seen = logs.changes
        check_room(job.folder.root)
        full = await asyncio.to_thread(disk.look)
        if full:
            return _End(Ending.STORAGE_FULL, full)
        if somebody_writes:
            await asyncio.sleep(disk.pause_s)
        somebody_writes = await logs.after(seen, LOOK_S) != seen


async def _turns(
    job: Job,
    provisioned: Provisioned,
    tail: LogTail,
    scripted: Sequence[ScriptedEvent],
    silence: _Silence,
    logs: Followed,
) -> _End:
    """Watches the agents' logs; ends for a solo roster by its turns, for any by a death."""
    solo = len(provisioned.agents) == 1
    log = TurnLog()
    expected = [event.event_id for event in scripted]
    while True:
        seen = logs.changes
        try:
            lines = tail.lines()
        except UnsafeFileError as error:
            # The container's own root put something else there: nobody will read turns again.
            return _End(Ending.AGENT_EXITED, f"agent log: {error}")
        log.read(lines)
        ending = log.ending(expected) if solo else None
        if ending is not None:
            return _End(ending, log.failed or log.stopped)
        if not provisioned.relay.is_serving:
            why = provisioned.relay.trouble
            raise PhaseError(Cause.RELAY_UNAVAILABLE, f"the relay ended before the agents: {why}")
        dead = _first_dead(job, provisioned)
        if dead:
            return _End(Ending.AGENT_EXITED, f"agent {dead} ended by itself")
        silence.look(tail.moved)
        if tail.behind:
            await asyncio.sleep(0)
        else:
            await logs.after(seen, LOOK_S)


def _first_dead(job: Job, provisioned: Provisioned) -> str:
    for agent in provisioned.agents:
        if (job.folder.agent_logs / f"{agent.id}.exit.json").exists():
            return agent.id
    return ""


class _Silence:
    """Notes when nothing moved for a while; ends nothing."""

    def __init__(self, seconds: float, provisioned: Provisioned, started: float) -> None:
        self._seconds = seconds
        self._provisioned = provisioned
        self._started = started
        self._last = started
        self._last_noticed = started
        self.noticed: list[float] = []

    def look(self, log_moved: bool) -> None:
        """Takes in whether the log moved, and asks relay and gateway."""
        now = time.monotonic()
        if log_moved:
            self._last = now
        self._last = max(
            self._last,
            self._provisioned.relay.last_activity(),
            self._provisioned.gateway.last_activity(),
        )
        if now - max(self._last, self._last_noticed) >= self._seconds:
            self.noticed.append(round(now - self._started, 3))
            self._last_noticed = now
