"""The ways to a provider: its own certificates, a proxy, Azure's and Databricks' URLs, rotation."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp
import pytest
import trustme
from aiohttp import web

from tests.workers.gateway.upstreams import COMPLETION, KEY, Agents, access, listening
from workers.contract.endpoint import Endpoint
from workers.gateway import CallResult, Gateway

pytestmark = pytest.mark.long

AUTHORITY = trustme.CA()
HOST = "models.example.com"


@dataclass
class Proxy:
    """An HTTP proxy that knows one name, and notes what it was asked for."""

    port: int = 0
    target: int = 0
    asked: list[str] = field(default_factory=list)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        self.asked.append(head.decode())
        to_reader, to_writer = await asyncio.open_connection("127.0.0.1", self.target)
        if head.startswith(b"CONNECT "):
            writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        else:
            to_writer.write(head)
        await asyncio.gather(_pump(reader, to_writer), _pump(to_reader, writer))


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while piece := await reader.read(65536):
            writer.write(piece)
            await writer.drain()
    except ConnectionError:
        pass  # The other side is gone: so is this one.
    finally:
        writer.close()


@dataclass
class Stage:
    url: str
    """By the provider's address."""
    port: int
    proxy: Proxy
    folder: Path
    seen: list[web.Request] = field(default_factory=list)

    @asynccontextmanager
    async def agents(
        self, environment: dict[str, str] | None = None, **endpoint: object
    ) -> AsyncIterator[Agents]:
        """A gateway to an endpoint of these fields, and its agents."""
        fields = {"provider": "openai", "api_key_env": "K", "base_url": self.url, **endpoint}
        one = Endpoint.model_validate(fields)
        async with AsyncExitStack() as stack:
            gateway = await stack.enter_async_context(
                Gateway({"m": one}, {"K": KEY, **(environment or {})})
            )
            trial = await gateway.open_trial((access(),), self.folder / f"{len(self.seen)}.jsonl")
            sock, port = listening()
            await trial.serve(sock)
            client = await stack.enter_async_context(aiohttp.ClientSession())
            yield Agents(trial, f"http://127.0.0.1:{port}", client)
            await trial.close()


@asynccontextmanager
async def stage(folder: Path, *, tls: bool = True) -> AsyncIterator[Stage]:
    """A provider, with certificates of its own, and a proxy before it."""
    AUTHORITY.cert_pem.write_to_path(str(folder / "ca.pem"))
    context = None
    if tls:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        AUTHORITY.issue_cert("127.0.0.1", HOST).configure_cert(context)
    proxy = Proxy()
    made = Stage("", 0, proxy, folder)

    async def answer(request: web.Request) -> web.Response:
        await request.read()
        made.seen.append(request)
        return web.json_response(COMPLETION)

    application = web.Application()
    application.router.add_route("*", "/{path:.*}", answer)
    runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
    made.port = proxy.target = runner.addresses[0][1]
    made.url = f"{'https' if tls else 'http'}://127.0.0.1:{made.port}"
    server = await asyncio.start_server(proxy.serve, "127.0.0.1", 0)
    proxy.port = server.sockets[0].getsockname()[1]
    try:
        yield made
    finally:
        server.close()
        await runner.cleanup()


def test_an_endpoints_own_certificates(tmp_path: Path) -> None:
    async def run() -> None:
        async with stage(tmp_path) as on:
            async with on.agents(ca_bundle=str(tmp_path / "ca.pem")) as agents:
                assert (await agents.ask())[0] == 200
            async with on.agents() as agents:
                status, content, _ = await agents.ask()
                assert status == 502
                assert json.loads(content)["error"]["code"] == "provider_unreachable"
                assert agents.trial.lines()[0].result is CallResult.PROVIDER_UNREACHABLE
            assert len(on.seen) == 1

    asyncio.run(run())


@pytest.mark.parametrize("by_environment", [False, True])
def test_a_proxy_to_a_provider_with_tls(tmp_path: Path, by_environment: bool) -> None:
    """The name is known to the proxy alone, which sees neither key nor request."""

    async def run() -> None:
        async with stage(tmp_path) as on:
            way = f"http://127.0.0.1:{on.proxy.port}"
            ca = str(tmp_path / "ca.pem")
            url = f"https://{HOST}:8443/v1"
            if by_environment:
                asked = on.agents(
                    {"HTTPS_PROXY": way.replace("//", "//user:pass@")}, base_url=url, ca_bundle=ca
                )
            else:
                asked = on.agents(base_url=url, ca_bundle=ca, proxy=way)
            async with asked as agents:
                assert (await agents.ask())[0] == 200
            (head,) = on.proxy.asked
            assert head.startswith(f"CONNECT {HOST}:8443 HTTP/1.1")
            assert ("Proxy-Authorization: Basic" in head) is by_environment
            assert KEY not in head
            (request,) = on.seen
            assert request.headers["Authorization"] == f"Bearer {KEY}"
            assert "Proxy-Authorization" not in request.headers

    asyncio.run(run())


def test_a_proxy_that_is_not_to_be_used(tmp_path: Path) -> None:
    async def run() -> None:
        async with stage(tmp_path, tls=False) as on:
            way = f"http://127.0.0.1:{on.proxy.port}"
            # Loopback is never asked of the environment's proxy, but of an endpoint's own.
            async with on.agents({"HTTP_PROXY": way}) as agents:
                assert (await agents.ask())[0] == 200
            assert on.proxy.asked == []
            async with on.agents(proxy=way) as agents:
                assert (await agents.ask())[0] == 200
            assert on.proxy.asked[0].startswith(f"POST {on.url}/chat/completions")

    asyncio.run(run())


def test_a_proxy_that_is_not_there(tmp_path: Path) -> None:
    async def run() -> None:
        async with (
            stage(tmp_path, tls=False) as on,
            on.agents(proxy="http://127.0.0.1:9") as agents,
        ):
            assert (await agents.ask())[0] == 502
            assert agents.trial.lines()[0].result is CallResult.PROVIDER_UNREACHABLE

    asyncio.run(run())


def test_urls_like_azures_and_databricks(tmp_path: Path) -> None:
    async def run() -> list[web.Request]:
        async with stage(tmp_path, tls=False) as on:
            async with on.agents(
                {"TEAM": "team-secret-123456"},
                base_url=f"{on.url}/openai/deployments/my%20luna/",
                query={"api-version": "2024-10-21", "x": "a b"},
                key_header="api-key",
                extra_headers={"X-Team": "red"},
                extra_headers_env={"X-Team-Key": "TEAM"},
            ) as agents:
                await agents.ask(path="/v1/chat/completions?mine=1")
            async with on.agents(
                base_url=f"{on.url}/serving-endpoints/luna", path="invocations"
            ) as agents:
                await agents.ask(path="/chat/completions")
            return on.seen

    azure, databricks = asyncio.run(run())
    assert azure.raw_path == (
        "/openai/deployments/my%20luna/chat/completions?mine=1&api-version=2024-10-21&x=a%20b"
    )
    assert azure.headers["api-key"] == KEY
    assert azure.headers["X-Team"] == "red"
    assert azure.headers["X-Team-Key"] == "team-secret-123456"
    assert "Authorization" not in azure.headers
    assert databricks.raw_path == "/serving-endpoints/luna/invocations"
    assert databricks.headers["Authorization"] == f"Bearer {KEY}"


def test_a_key_that_rotates_while_a_trial_runs(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text("first-key-12345\n")

    async def run() -> list[str]:
        async with stage(tmp_path, tls=False) as on:
            async with on.agents({"K": "", "K_FILE": str(file)}) as agents:
                await agents.ask()
                swapped = tmp_path / "new"
                swapped.write_text("second-key-12345\n")
                swapped.rename(file)
                await agents.ask()
                file.unlink()
                await agents.ask()
            return [request.headers["Authorization"] for request in on.seen]

    assert asyncio.run(run()) == [
        "Bearer first-key-12345",
        "Bearer second-key-12345",
        "Bearer second-key-12345",
    ]
