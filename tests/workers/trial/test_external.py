"""Trials on a relay of somebody else's: a second process of ours, configured like a deployment."""

from __future__ import annotations

import asyncio
import base64
import json
import re
import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trustme
from aiohttp import web

from tests.buzz_stand_in.building import build
from tests.second_relay import SecondRelay, second_relay
from tests.workers.relay.deployment import listening
from tests.workers.trial.stage import CHANNEL_ID, DOCKERFILE, Stage, shell_call, stage
from tests.workers.trial.test_run import SAY, left_of
from workers.contract.outcome import Blame, Cause, Phase, Verdict
from workers.contract.relay import Deployment
from workers.contract.trial import TrialEnd
from workers.nostr.keys import Keypair
from workers.relay import RelayClient, RelayRefusedError, dialling
from workers.relay.forwarder import Forwarder

pytestmark = pytest.mark.docker

TOLD = SAY + " && buzz messages get --channel CHANNEL | grep -c hello"


@pytest.fixture(scope="module")
def there(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecondRelay]:
    with second_relay(tmp_path_factory.mktemp("relay")) as relay:
        yield relay


def used(relay: SecondRelay, **options: Any) -> dict[str, Any]:
    """What makes a stage's trials use a deployment."""
    named = Deployment(url=relay.url, owner_key_env="OWNER", gateway=options.pop("gateway", None))
    named = named.model_copy(update={"gateway": named.gateway or relay.gateway})
    return {"owner": relay.owner, "spec": {"relay": named}, **options}


async def tried(here: Stage) -> TrialEnd:
    end = await here.trial()
    assert left_of(here.sweep.sweep) == []
    return end


def evidence(here: Stage, end: TrialEnd) -> list[tuple[str, str, str, int]]:
    """What was said, by whom and to how many."""
    found = json.loads(here.stored(end, "evidence.json"))["messages"]
    return [
        (m["author"], m["author_role"], m["content"], len(m["mentioned_pubkeys"])) for m in found
    ]


def test_a_trial_ends_as_on_a_relay_of_its_own(tmp_path: Path, there: SecondRelay) -> None:
    async def run(folder: Path, **options: Any) -> tuple[TrialEnd, list[Any], bytes]:
        async with stage(folder, TOLD, **options) as here:
            end = await tried(here)
            whole = b"".join(here.stored(end, name) for name in end.record.files)
            return end, evidence(here, end), whole

    (tmp_path / "own").mkdir()
    (tmp_path / "there").mkdir()
    own, said, _ = asyncio.run(run(tmp_path / "own"))
    end, said_there, stored = asyncio.run(run(tmp_path / "there", **used(there)))
    record = end.record
    assert (record.verdict, record.cause, record.detail) == (Verdict.PASS, Cause.NONE, "")
    assert (own.record.verdict, own.record.cause) == (record.verdict, record.cause)
    assert (
        said_there
        == said
        == [
            ("user", "user", "@solo-1 Say something.\n", 1),
            ("solo-1", "orchestrator", "hello", 0),
        ]
    )
    assert own.record.relay is None
    assert record.leftovers == ()
    assert record.relay is not None
    assert (record.relay.url, record.relay.gateway) == (there.url, there.gateway)
    assert (record.relay.archived, record.relay.seen and record.relay.seen.name) == (
        "archived",
        "Buzz Relay",
    )
    assert set(own.record.files) == set(record.files)
    for secret in (there.owner.secret_hex, there.owner.nsec):
        assert secret.encode() not in stored


def test_the_production_stack_works_there_too(tmp_path: Path, there: SecondRelay) -> None:
    async def run() -> tuple[TrialEnd, list[Any]]:
        programs = build(tmp_path / "bin")
        async with stage(tmp_path / "s", SAY, programs=programs, **used(there)) as here:
            end = await tried(here)
            return end, evidence(here, end)

    (tmp_path / "s").mkdir()
    end, said = asyncio.run(run())
    record = end.record
    assert (record.verdict, record.cause, record.detail) == (Verdict.PASS, Cause.NONE, "")
    assert said[1:] == [("solo-1", "orchestrator", "hello", 0)]
    assert record.relay is not None and record.relay.archived == "archived"


def test_a_relay_that_limits_rates_is_waited_for(tmp_path: Path) -> None:
    async def run(relay: SecondRelay) -> TrialEnd:
        async with stage(tmp_path / "s", SAY, **used(relay)) as here:
            return await tried(here)

    (tmp_path / "s").mkdir()
    with second_relay(tmp_path, "--api-rate", "2/1", "--frame-rate", "2/1") as relay:
        record = asyncio.run(run(relay)).record
    assert (record.verdict, record.cause, record.detail) == (Verdict.PASS, Cause.NONE, "")
    assert record.leftovers == ()


def test_a_relay_that_limits_rates_for_longer_than_there_is_time(tmp_path: Path) -> None:
    async def run(relay: SecondRelay) -> TrialEnd:
        async with stage(tmp_path / "s", SAY, **used(relay)) as here:
            return await tried(here)

    (tmp_path / "s").mkdir()
    with second_relay(tmp_path, "--api-rate", "2/86400") as relay:
        record = asyncio.run(run(relay)).record
    assert (record.verdict, record.blame, record.phase, record.cause) == (
        Verdict.INVALID,
        Blame.HARNESS,
        Phase.PROVISION,
        Cause.PROVISION_FAILED,
    )
    assert "rate-limited: quota exceeded; retry in" in record.detail


@pytest.mark.parametrize("waits", [False, True])
def test_a_relay_that_dies_in_the_middle_is_the_relays_doing(tmp_path: Path, waits: bool) -> None:
    """Whether the agent ends its turn, unheard, or works on."""

    async def run(relay: SecondRelay) -> TrialEnd:
        def die(_: dict[str, Any]) -> web.StreamResponse:
            relay.kill()
            return web.json_response(shell_call("sleep 120" if waits else "true"))

        lost_s = 0.5 if waits else 60.0
        async with stage(tmp_path / "s", die, **used(relay, relay_lost_s=lost_s)) as here:
            return await tried(here)

    (tmp_path / "s").mkdir()
    with second_relay(tmp_path) as relay:
        record = asyncio.run(run(relay)).record
    assert (record.verdict, record.blame, record.cause) == (
        Verdict.INVALID,
        Blame.HARNESS,
        Cause.RELAY_UNAVAILABLE,
    )
    assert record.phase is (Phase.DRIVE if waits else Phase.COLLECT)
    (left,) = record.leftovers
    assert record.relay is not None
    assert f"channel {record.relay.channel_id} is not archived" in left
    assert record.relay.archived is None


@pytest.mark.parametrize("agent", ["reference", "buzz"])
def test_a_relay_that_comes_back_in_time_has_cost_nothing(
    tmp_path: Path, there: SecondRelay, agent: str
) -> None:
    """Every connection to it breaks, nobody can make another for a while, and the turn goes on."""

    async def run() -> TrialEnd:
        back: list[asyncio.Task[Forwarder]] = []
        way, port = await _way_to(there)

        say = f"sleep 1; until {SAY}; do sleep 0.2; done"

        async def go_and_return() -> Forwarder:
            await way.close()
            await asyncio.sleep(0.7)
            return (await _way_to(there, port))[0]

        def cut(body: dict[str, Any]) -> web.StreamResponse:
            back.append(asyncio.create_task(go_and_return()))
            channel = CHANNEL_ID.search(json.dumps(body))
            assert channel is not None
            return web.json_response(shell_call(say.replace("CHANNEL", channel[0])))

        options = used(there, gateway=f"127.0.0.1:{port}")
        if agent == "buzz":
            options["programs"] = build(tmp_path / "bin")
        async with stage(tmp_path / "s", cut, **options) as here:
            try:
                return await tried(here)
            finally:
                await (await back[0]).close()

    (tmp_path / "s").mkdir()
    record = asyncio.run(run()).record
    assert (record.verdict, record.cause, record.detail) == (Verdict.PASS, Cause.NONE, "")
    assert record.leftovers == ()
    assert record.relay is not None and record.relay.archived == "archived"


async def _way_to(there: SecondRelay, port: int = 0) -> tuple[Forwarder, int]:
    """A way to the relay that can be cut."""
    way, listener = Forwarder("127.0.0.1", there.port), listening(port)
    await way.serve(listener)
    return way, int(listener.getsockname()[1])


def test_a_relay_that_quotes_what_it_refuses_gives_no_secret_away(
    tmp_path: Path, there: SecondRelay, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(self: RelayClient, channel: str) -> None:
        assert self._auth_tag is not None
        raise RelayRefusedError("POST /events", 400, f"invalid: {self._auth_tag.to_text()}")

    async def run() -> TrialEnd:
        async with stage(tmp_path / "s", SAY, **used(there)) as here:
            return await tried(here)

    (tmp_path / "s").mkdir()
    monkeypatch.setattr(RelayClient, "archive", refuse)
    record = asyncio.run(run()).record
    assert record.verdict is Verdict.PASS
    (left,) = record.leftovers
    assert record.relay is not None and record.relay.archived is not None
    for words in (left, record.relay.archived):
        assert "[struck out]" in words
        assert not re.search("[0-9a-f]{128}", words)


def test_an_owner_that_is_no_member_is_no_models_doing(tmp_path: Path, there: SecondRelay) -> None:
    async def run() -> TrialEnd:
        options = {**used(there), "owner": Keypair.generate()}
        async with stage(tmp_path, SAY, **options) as here:
            return await tried(here)

    record = asyncio.run(run()).record
    assert (record.phase, record.cause) == (Phase.PROVISION, Cause.PROVISION_FAILED)
    assert "You must be a relay member" in record.detail
    assert record.leftovers == ()


def test_tls_goes_from_the_agent_to_the_relay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The container takes the relay's name for its own loopback; certificates hold all the same."""
    authority = trustme.CA()
    pem = authority.cert_pem.bytes()
    (tmp_path / "ca.pem").write_bytes(pem)
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
    dialling.trusted.cache_clear()
    trusting = (
        f"RUN echo {base64.b64encode(pem).decode()} | base64 -d > /ca.pem\n"
        "ENV SSL_CERT_FILE=/ca.pem\n"
    )

    async def run(relay: SecondRelay) -> TrialEnd:
        async with AsyncExitStack() as stack:
            port = await stack.enter_async_context(ending_tls(authority, relay.port))
            options = used(relay, gateway=f"127.0.0.1:{port}", dockerfile=DOCKERFILE + trusting)
            here = await stack.enter_async_context(stage(tmp_path / "s", TOLD, **options))
            return await tried(here)

    (tmp_path / "s").mkdir()
    try:
        with second_relay(tmp_path, url="wss://relay.deployment.test:8443") as relay:
            record = asyncio.run(run(relay)).record
    finally:
        dialling.trusted.cache_clear()
    assert (record.verdict, record.cause, record.detail) == (Verdict.PASS, Cause.NONE, "")


@asynccontextmanager
async def ending_tls(authority: trustme.CA, port: int) -> AsyncIterator[int]:
    """What stands before a deployment's relay; gives its port."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("relay.deployment.test").configure_cert(context)
    onward = Forwarder("127.0.0.1", port)
    server = await asyncio.start_server(onward._accepted, "127.0.0.1", 0, ssl=context)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        await onward.close()
