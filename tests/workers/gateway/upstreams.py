"""Small providers on real sockets, and an agent's side of the gateway."""

from __future__ import annotations

import asyncio
import io
import json
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
from aiohttp import web
from multidict import CIMultiDict

from workers.allowance import Purse
from workers.contract.condition import Budget, Prices
from workers.contract.endpoint import Endpoint
from workers.gateway import AgentAccess, Gateway, GatewayLimits, GatewayTrial, LedgerLine

KEY = "sk-provider-0123456789abcdef-canary"
PRICES = Prices(
    input_per_million_usd=3, cached_input_per_million_usd=0.3, output_per_million_usd=15
)
COMPLETION = {
    "choices": [{"message": {"role": "assistant", "content": "hi"}, "finish_reason": "stop"}],
    "usage": {
        "prompt_tokens": 1000,
        "completion_tokens": 100,
        "prompt_tokens_details": {"cached_tokens": 400},
    },
}

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@asynccontextmanager
async def provider(handler: Handler) -> AsyncIterator[str]:
    """Serves one handler at every path; its base URL."""
    application = web.Application(client_max_size=2**27)
    application.router.add_route("*", "/{path:.*}", handler)
    runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


@asynccontextmanager
async def raw_provider(answer: bytes, *, hang: bool = False) -> AsyncIterator[str]:
    """Answers every connection's first bytes with ``answer``, then hangs or closes."""
    ending = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(65536)
        writer.write(answer)
        await writer.drain()
        if hang:
            await ending.wait()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        ending.set()
        server.close()
        await asyncio.sleep(0)


def listening() -> tuple[socket.socket, int]:
    """A listening socket on the loopback, and its port."""
    sock = socket.create_server(("127.0.0.1", 0))
    sock.setblocking(False)
    return sock, sock.getsockname()[1]


def access(agent: str = "solo-1", endpoint: str = "m", **budget: Any) -> AgentAccess:
    return AgentAccess(agent, endpoint, PRICES, Budget(**budget))


@dataclass
class Agents:
    """A trial's agents with their client."""

    trial: GatewayTrial
    url: str
    client: aiohttp.ClientSession
    model: str = "m"
    seen: list[bytes] = field(default_factory=list)
    """Every byte that came back."""

    async def ask(
        self,
        body: dict[str, Any] | bytes | None = None,
        *,
        agent: str = "solo-1",
        path: str = "/v1/chat/completions",
        headers: dict[str, str] | None = None,
        token: str | None = None,
        url: str | None = None,
    ) -> tuple[int, bytes, CIMultiDict[str]]:
        """Posts a request; status, body and headers of the answer."""
        data = body if isinstance(body, bytes) else json.dumps(self.body(**(body or {}))).encode()
        sent = {
            "Authorization": f"Bearer {token or self.trial.tokens[agent]}",
            "Content-Type": "application/json",
            **(headers or {}),
        }
        async with self.client.post(
            (url or self.url) + path, data=io.BytesIO(data), headers=sent, allow_redirects=False
        ) as answer:
            content = await answer.read()
            self.seen += [content, repr(answer.headers).encode()]
            return answer.status, content, answer.headers.copy()

    def body(self, **more: Any) -> dict[str, Any]:
        return {"model": self.model, "messages": [{"role": "user", "content": "hi"}], **more}


@asynccontextmanager
async def gateway_to(
    base_url: str | None,
    folder: Path,
    *,
    agents: tuple[AgentAccess, ...] = (),
    provider: str = "openai",
    limits: GatewayLimits | None = None,
    model: str | None = None,
    trial_max_cost_usd: float | None = None,
    purse: Purse | None = None,
    **more: Any,
) -> AsyncIterator[Agents]:
    """A gateway with endpoint ``m``, one trial on a socket, and its agents."""
    fields = {"provider": provider, "api_key_env": "PROVIDER_KEY", "base_url": base_url}
    endpoint = Endpoint.model_validate({**fields, "model": model, **more})
    async with AsyncExitStack() as stack:
        gateway = await stack.enter_async_context(
            Gateway({"m": endpoint}, {"PROVIDER_KEY": KEY}, limits=limits, purse=purse)
        )
        trial = await gateway.open_trial(
            agents or (access(),), folder / "usage.jsonl", trial_max_cost_usd=trial_max_cost_usd
        )
        sock, port = listening()
        await trial.serve(sock)
        client = await stack.enter_async_context(aiohttp.ClientSession())
        yield Agents(trial, f"http://127.0.0.1:{port}", client, model or "m")
        await trial.close()


async def completion(_: web.Request) -> web.Response:
    """A provider's handler: a chat completion."""
    return web.json_response(COMPLETION)


def only(agents: Agents) -> LedgerLine:
    """The one line of the ledger."""
    (line,) = agents.trial.lines()
    return line
