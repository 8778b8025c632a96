"""Whether a deployment would serve an owner's identities, looked at before a sweep."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable

import pytest
from aiohttp import web

from tests.workers.relay.deployment import AUTHORITY, Deployment, deployment
from workers.nostr.keys import Keypair
from workers.relay import UnfitRelayError, look_at

URL = f"ws://{AUTHORITY}"


def looked(
    owner: Callable[[Deployment], Keypair | None], url: str = URL, community: str = AUTHORITY
) -> dict[str, object]:
    async def run() -> dict[str, object]:
        async with asyncio.timeout(60), deployment() as there:
            return await look_at(url, ("127.0.0.1", there.port), community, owner(there))

    return asyncio.run(run())


def test_a_relay_that_is_fit_tells_its_name_and_version() -> None:
    said = looked(lambda there: there.owner)
    assert (said["name"], said["software"]) == ("Buzz Relay", "apiary")
    assert said["version"]


def test_without_the_owners_key_only_readiness_is_looked_at() -> None:
    assert looked(lambda there: None)["name"] == "Buzz Relay"


def test_an_owner_that_is_no_member_is_told_how_to_become_one() -> None:
    stranger = Keypair.generate()
    with pytest.raises(UnfitRelayError) as caught:
        looked(lambda there: stranger)
    words = str(caught.value)
    assert f"the owner {stranger.pubkey} is no member of community {AUTHORITY}" in words
    assert f"buzz-admin add-member --pubkey {stranger.pubkey}" in words
    assert stranger.secret_hex not in words


def test_another_host_name_is_told_from_a_relay_that_is_not_there() -> None:
    with pytest.raises(UnfitRelayError, match=r"serves no community other\.test: the url must"):
        looked(lambda there: there.owner, "ws://other.test", "other.test")


def test_another_scheme_is_told() -> None:
    # The relay behind signs ws; whoever ends TLS before it does not change that.
    async def run() -> None:
        async with asyncio.timeout(60), deployment() as there:
            there.relay._core.state.secure = True
            await look_at(URL, ("127.0.0.1", there.port), AUTHORITY, there.owner)

    with pytest.raises(UnfitRelayError, match="NIP-98: URL mismatch: the url must have scheme"):
        asyncio.run(run())


def test_nobody_there() -> None:
    gone = socket.create_server(("127.0.0.1", 0))
    port = gone.getsockname()[1]
    gone.close()
    with pytest.raises(UnfitRelayError, match=f"by way of 127.0.0.1:{port}.*is it running"):
        asyncio.run(look_at(URL, ("127.0.0.1", port), AUTHORITY, Keypair.generate()))


def test_a_relay_that_is_not_ready_is_quoted() -> None:
    async def answer(_: web.Request) -> web.Response:
        return web.json_response({"status": "not_ready", "redis": False}, status=503)

    with pytest.raises(UnfitRelayError, match=r'is not ready: 503: .*"redis": false'):
        at_a_server(answer)


def test_a_relay_without_attestations_is_told_from_one_without_the_owner() -> None:
    async def answer(request: web.Request) -> web.Response:
        if request.path != "/query":
            return web.json_response({})
        if "x-auth-tag" in request.headers:
            return web.json_response({"error": "relay_membership_required"}, status=403)
        return web.json_response([])

    with pytest.raises(UnfitRelayError, match="set BUZZ_ALLOW_NIP_OA_AUTH to true"):
        at_a_server(answer)


def at_a_server(answer: Callable[[web.Request], Awaitable[web.Response]]) -> None:
    async def run() -> None:
        application = web.Application()
        application.router.add_route("*", "/{path:.*}", answer)
        runner = web.AppRunner(application, shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        port = runner.addresses[0][1]
        try:
            async with asyncio.timeout(60):
                await look_at(URL, ("127.0.0.1", port), AUTHORITY, Keypair.generate())
        finally:
            await runner.cleanup()

    asyncio.run(run())
