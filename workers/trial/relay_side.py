"""The side of a trial that a deployment's relay needs: what is noted of it, and its channel's end.

A trial's own relay is forgotten with the trial; a deployment stays, and so would the channel.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, contextmanager

from workers.contract.outcome import Cause
from workers.contract.relay import Deployment, RelaySeen, RelayUse
from workers.nostr.keys import Keypair
from workers.relay import (
    ExternalRelay,
    RelayClient,
    RelayError,
    RelayRefusedError,
    RelayUnreachableError,
    TrialRelay,
)
from workers.trial.errors import PhaseError
from workers.trial.facts import Facts
from workers.trial.handoff import Job, Tools

ARCHIVED = "archived"
"""A refusal to archive that holds this word is no fault: it says that the channel is archived, or
(Buzz's own harness lives with it) who might have archived it."""


def owner_of(job: Job, tools: Tools) -> Keypair:
    """The owner of a trial's identities: the deployment's member, else a fresh key."""
    if job.sweep.relay == "embedded":
        return Keypair.generate()
    if tools.owner is None:
        name = job.sweep.relay.owner_key_env
        raise PhaseError(Cause.PROVISION_FAILED, f"this node has no key of the owner, ${name}")
    return tools.owner


def open_deployment(
    job: Job, deployment: Deployment, tools: Tools, stack: AsyncExitStack, facts: Facts
) -> ExternalRelay:
    """A trial's view of the deployment; the stack closes it."""
    relay = ExternalRelay(
        deployment.url,
        gateway=deployment.dialled,
        lost_s=job.sweep.limits.relay_lost_s,
        observe=tools.relay_event,
    )
    tools.relays.add(relay)
    stack.callback(tools.relays.discard, relay)
    stack.push_async_callback(relay.close)
    facts.relay = RelayUse(url=deployment.url, gateway=deployment.gateway)
    return relay


async def note_seen(deployment: Deployment, client: RelayClient, facts: Facts) -> None:
    """Notes what the relay says of itself as the trial begins; nothing if it takes too long.

    It is asked once and for a short while only: whether it is there, and serves the trial, is told
    by the requests that follow, which have more time.
    """
    try:
        said = await client.information()
    except RelayUnreachableError:
        return
    _note(facts, seen=RelaySeen.of(deployment, said))


def archiving(
    deployment: Deployment, client: RelayClient, channel_id: str, facts: Facts
) -> Callable[[], Awaitable[None]]:
    """Notes the trial's channel; what is returned archives it, and is due at the trial's end."""
    _note(facts, channel_id=channel_id)

    async def archive() -> None:
        if not deployment.archive_on_teardown:
            return
        try:
            await client.archive(channel_id)
            _note(facts, archived=ARCHIVED)
        except RelayRefusedError as error:
            _note(facts, archived=error.reason)
            if ARCHIVED not in error.reason:
                raise _StaysOpenError(f"channel {channel_id} is not archived: {error}") from error
        except RelayError as error:
            raise _StaysOpenError(f"channel {channel_id} is not archived: {error}") from error

    return archive


class _StaysOpenError(Exception):
    """A leftover: the channel stays in the deployment as it is."""


@contextmanager
def blaming(relay: TrialRelay) -> Iterator[None]:
    """Agents that do not get ready while their relay is away are the relay's doing.

    Raises:
        PhaseError: ``relay_unavailable`` in place of ``agent_launch`` or ``readiness_timeout``.
    """
    try:
        yield
    except PhaseError as error:
        if error.cause not in (Cause.AGENT_LAUNCH, Cause.READINESS_TIMEOUT) or not relay.trouble:
            raise
        why = f"{error.detail}; their relay: {relay.trouble}"
        raise PhaseError(Cause.RELAY_UNAVAILABLE, why) from error


def _note(facts: Facts, **changes: object) -> None:
    assert facts.relay is not None  # set with the view, which comes first
    facts.relay = facts.relay.model_copy(update=changes)
