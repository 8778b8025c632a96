"""Phases of a trial on a deployment's relay, without a container."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import pytest
from aiohttp import web

from tests.workers.relay.deployment import AUTHORITY, Deployment, Party, deployment, listening
from tests.workers.trial.test_launch import ENDPOINTS
from tests.workers.trial.test_provision import job_of
from workers.container.interface import Engine
from workers.contract import relay as contract
from workers.contract.outcome import Cause
from workers.contract.relay import RelayUse
from workers.gateway import Gateway
from workers.nostr.attestation import attest
from workers.nostr.event import Event
from workers.nostr.keys import Keypair, derive_identity
from workers.relay import RelayClient, RelayRefusedError, RelayUnreachableError
from workers.storage import open_store
from workers.trial.collect import EVIDENCE_FILE, collect, in_order
from workers.trial.errors import PhaseError, cause_of_relay
from workers.trial.facts import Facts
from workers.trial.files import TrialFolder
from workers.trial.handoff import Driven, Ending, Job, Provisioned, Tools
from workers.trial.provision import provision
from workers.trial.relay_side import archiving, blaming

INVITES = "create-channel-invite-users"


@dataclass
class OnStage:
    """A trial that is provisioned."""

    job: Job
    made: Provisioned
    facts: Facts

    async def collected(self, task_event: Event) -> dict[str, object]:
        """The evidence, as it would be after a drive."""
        driven = Driven(task_event, (), Ending.TURN_ENDED, "", None, 0.0, 1.0, ())
        await collect(self.job, self.made, driven)
        found: dict[str, object] = json.loads((self.job.folder.out / EVIDENCE_FILE).read_bytes())
        return found

    async def asked(self) -> Event:
        """The task's message."""
        return await self.made.user_client.send_message(self.made.channel_id, "do it")


@asynccontextmanager
async def provisioned(
    there: Deployment, folder: Path, task: str = INVITES, number: int = 0
) -> AsyncIterator[OnStage]:
    """A trial of a shipped task from its provisioning to its teardown."""
    named = contract.Deployment(
        url=there.relay.url, owner_key_env="OWNER", gateway=f"127.0.0.1:{there.port}"
    )
    bare = job_of(folder, task)
    job = replace(
        bare,
        sweep=bare.sweep.model_copy(update={"endpoints": ENDPOINTS, "relay": named}),
        lease=bare.lease.model_copy(update={"attempt": f"{number:032x}"}),
        folder=TrialFolder(folder / f"t{number}"),
    )
    job.folder.create()
    async with AsyncExitStack() as stack:
        gateway = await stack.enter_async_context(Gateway(ENDPOINTS, {}))
        store = open_store(folder.as_uri())
        tools = Tools(cast(Engine, None), gateway, store, "n", folder, folder, owner=there.owner)
        facts = Facts()
        yield OnStage(job, await provision(job, tools, stack, facts), facts)


def at_a_deployment(scenario: Callable[[Deployment], Awaitable[None]]) -> None:
    async def run() -> None:
        async with asyncio.timeout(60), deployment() as there:
            await scenario(there)

    asyncio.run(run())


def test_the_channel_is_archived_and_the_record_says_so(tmp_path: Path) -> None:
    async def scenario(there: Deployment) -> None:
        async with provisioned(there, tmp_path, "user-mention") as trial:
            assert trial.facts.relay == RelayUse(
                url=f"ws://{AUTHORITY}",
                gateway=f"127.0.0.1:{there.port}",
                seen=trial.facts.relay and trial.facts.relay.seen,
                channel_id=trial.made.channel_id,
            )
            user, task = trial.made.user, "user-mention"
            assert user.keypair == derive_identity(there.owner, f"task-user:{task}")
            assert trial.job.secrets.found_in(there.owner.nsec.encode())
        assert trial.facts.relay is not None
        assert trial.facts.relay.seen is not None
        assert trial.facts.relay.seen.pubkey == there.relay.pubkey
        assert trial.facts.relay.archived == "archived"
        async with there.view().client(user) as client:
            with pytest.raises(RelayRefusedError, match="channel is archived"):
                await client.send_message(trial.made.channel_id, "too late")
        assert not trial.made.relay.is_serving

    at_a_deployment(scenario)


def test_a_channel_whose_creation_was_not_answered_is_archived_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    create, made = RelayClient.create_channel, []

    async def unanswered(self: RelayClient, name: str, **options: Any) -> str:
        made.append(await create(self, name, **options))
        raise RelayUnreachableError("POST /events: no answer")

    monkeypatch.setattr(RelayClient, "create_channel", unanswered)

    async def scenario(there: Deployment) -> None:
        with pytest.raises(PhaseError) as caught:
            async with provisioned(there, tmp_path, "user-mention"):
                pass
        assert caught.value.cause is Cause.RELAY_UNAVAILABLE
        user = derive_identity(there.owner, "task-user:user-mention")
        async with there.view().client(Party(user, attest(there.owner, user.pubkey))) as client:
            with pytest.raises(RelayRefusedError, match="channel is archived"):
                await client.send_message(made[0], "too late")

    at_a_deployment(scenario)


def test_a_relay_too_slow_to_tell_of_itself_can_still_be_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def slow(self: RelayClient) -> dict[str, Any]:
        raise RelayUnreachableError("GET /info: no answer within 5 s")

    monkeypatch.setattr(RelayClient, "information", slow)

    async def scenario(there: Deployment) -> None:
        async with provisioned(there, tmp_path, "user-mention") as trial:
            assert await trial.asked()
        assert trial.facts.relay is not None
        assert (trial.facts.relay.seen, trial.facts.relay.archived) == (None, "archived")

    at_a_deployment(scenario)


@pytest.mark.long
def test_trials_that_start_together_share_what_is_derived_from_the_owner(tmp_path: Path) -> None:
    async def scenario(there: Deployment) -> None:
        async with AsyncExitStack() as stack:
            trials = await asyncio.gather(
                *(
                    stack.enter_async_context(provisioned(there, tmp_path, number=number))
                    for number in range(3)
                )
            )
            assert len({trial.made.directory for trial in trials}) == 1
            assert len({trial.made.orchestrator.keypair.pubkey for trial in trials}) == 3
            assert len({trial.made.channel_id for trial in trials}) == 3

    at_a_deployment(scenario)


def test_another_trials_open_channel_is_no_evidence(tmp_path: Path) -> None:
    name = "fix-pr-1234"

    async def scenario(there: Deployment) -> None:
        async with provisioned(there, tmp_path) as trial:
            other = there.party()
            async with there.view().client(other) as client:
                tags = [("h", "c0ffee00-0000-4000-8000-000000000000"), ("name", name)]
                moment = int(time.time())
                await client.publish(Event.sign(other.keypair, 9007, tags, "", moment))
            async with trial.made.relay.client(trial.made.orchestrator) as client:
                own = await client.create_channel(name)
                assert len(await client.find_channels(name)) == 2
            evidence = await trial.collected(await trial.asked())
        channels = cast(list[dict[str, str]], evidence["observed_channels"])
        assert [channel["channel_id"] for channel in channels] == [own]

    at_a_deployment(scenario)


@pytest.mark.parametrize("answered", [True, False])
def test_a_reply_that_nobody_could_hear_is_not_missed_by_the_model(
    tmp_path: Path, answered: bool
) -> None:
    async def scenario(there: Deployment) -> None:
        async with provisioned(there, tmp_path, "user-mention") as trial:
            listener = listening()
            await trial.made.relay.serve(listener)
            task = await trial.asked()
            if answered:
                async with trial.made.relay.client(trial.made.orchestrator) as agent:
                    await agent.send_message(trial.made.channel_id, "5328", reply_to=task)
            await _fail_to_reach(trial, listener.getsockname())
            if answered:
                evidence = await trial.collected(task)
                rows = cast(list[dict[str, str]], evidence["messages"])
                assert [row["content"] for row in rows] == ["do it", "5328"]
            else:
                with pytest.raises(PhaseError, match="no word of the orchestrator") as caught:
                    await trial.collected(task)
                assert caught.value.cause is Cause.RELAY_UNAVAILABLE

    at_a_deployment(scenario)


async def _fail_to_reach(trial: OnStage, address: tuple[str, int]) -> None:
    """One connection of an agent that does not come through."""
    relay = trial.made.relay
    right = relay._forwarder._port  # type: ignore[attr-defined]
    gone = listening()
    relay._forwarder._port = gone.getsockname()[1]  # type: ignore[attr-defined]
    gone.close()
    _, writer = await asyncio.open_connection(*address)
    async with asyncio.timeout(20):
        while not relay.outages:  # noqa: ASYNC110 - it has no events of its own
            await asyncio.sleep(0.002)
    relay._forwarder._port = right  # type: ignore[attr-defined]
    writer.close()
    with pytest.raises(PhaseError, match=r"127\.0\.0\.1") as caught, blaming(relay):
        raise PhaseError(Cause.AGENT_LAUNCH, "it ended")
    assert caught.value.cause is Cause.RELAY_UNAVAILABLE
    with pytest.raises(PhaseError) as other, blaming(relay):
        raise PhaseError(Cause.CONTAINER_START, "no image")
    assert other.value.cause is Cause.CONTAINER_START


@pytest.mark.parametrize(
    ("words", "is_left"),
    [
        ("invalid: channel is archived", False),
        (
            "invalid: actor not authorized for name/about/archived/visibility/ttl changes",
            False,
        ),
        ("restricted: not a channel member", True),
    ],
)
def test_a_refusal_to_archive(words: str, is_left: bool) -> None:
    async def refuse(_: web.Request) -> web.Response:
        return web.json_response({"error": words}, status=400)

    async def run() -> Facts:
        application = web.Application()
        application.router.add_post("/events", refuse)
        runner = web.AppRunner(application, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        url = f"ws://127.0.0.1:{runner.addresses[0][1]}"
        named = contract.Deployment(url=url, owner_key_env="OWNER")
        facts = Facts(relay=RelayUse(url=url))
        try:
            async with RelayClient(url, Keypair.generate(), None) as client:
                archive = archiving(named, client, "c", facts)
                if is_left:
                    with pytest.raises(Exception, match="channel c is not archived: .*" + words):
                        await archive()
                else:
                    await archive()
                kept = named.model_copy(update={"archive_on_teardown": False})
                await archiving(kept, client, "c", facts)()
        finally:
            await runner.cleanup()
        return facts

    facts = asyncio.run(run())
    assert facts.relay is not None
    assert (facts.relay.channel_id, facts.relay.archived) == ("c", words)


def said(content: str, moment: int, reply_to: Event | None = None) -> Event:
    tags = [("h", "c"), *([("e", reply_to.id, "", "reply")] if reply_to else [])]
    return Event.sign(Keypair.generate(), 9, tags, content, moment)


def test_what_was_seen_keeps_its_order_and_the_rest_goes_by_time_behind_what_it_answers() -> None:
    root = said("root", 100)
    first, second = said("first", 101, root), said("second", 101, root)
    early, late = said("early", 99), said("late", 105)
    messages = [late, second, first, root, early]
    assert in_order(messages, [root, second, first, late]) == [early, root, second, first, late]
    assert in_order(messages, [early, root, first, second, late]) == [
        early,
        root,
        first,
        second,
        late,
    ]
    # Nobody saw the root, whose clock is behind its reply's.
    slow = said("slow", 200)
    answer = said("answer", 150, slow)
    assert in_order([answer, slow, late], []) == [late, slow, answer]
    assert in_order([answer, slow, late], [late, answer]) == [late, slow, answer]


def test_what_was_missed_and_came_within_one_second_is_put_behind_what_it_answers() -> None:
    root = said("root", 100)
    answer = next(each for n in range(99) if (each := said(f"answer {n}", 100, root)).id > root.id)
    # The relay's history has the lower id first, so the harness took the answer in before.
    assert in_order([answer, root], [answer, root]) == [root, answer]
    assert in_order([answer, root, late := said("late", 101)], [late, answer, root]) == [
        late,
        root,
        answer,
    ]


@pytest.mark.parametrize("status", [502, 503, 504])
def test_a_relay_that_says_it_is_not_there_is_not_there(status: int) -> None:
    error = RelayRefusedError("POST /events", status, "relay restarting")
    assert cause_of_relay(error, Cause.SEED_FAILED) is Cause.RELAY_UNAVAILABLE
    busy = RelayRefusedError("POST /events", 429, "rate-limited: quota exceeded; retry in 60s")
    assert cause_of_relay(busy, Cause.SEED_FAILED) is Cause.SEED_FAILED
