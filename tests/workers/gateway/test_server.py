"""The gateway of a node: endpoints, keys, and the three dialects to a whole provider."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.workers.gateway.upstreams import KEY, access, listening
from workers.contract.endpoint import Endpoint
from workers.gateway import AgentAccess, CallResult, Gateway, GatewayError
from workers.model import ScriptedModel

MODEL = "scripted-solver"
BODIES: dict[str, dict[str, Any]] = {
    "/v1/chat/completions": {
        "messages": [{"role": "user", "content": "hi"}],
        "stream_options": {"include_usage": True},
    },
    "/v1/responses": {"input": [{"role": "user", "content": "hi"}]},
    "/v1/messages": {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 100},
}


@pytest.mark.parametrize("path", BODIES)
@pytest.mark.parametrize("stream", [False, True])
def test_every_dialect_is_forwarded_and_metered(tmp_path: Path, path: str, stream: bool) -> None:
    body = json.dumps({"model": MODEL, "stream": stream, **BODIES[path]})

    async def run() -> None:
        async with ScriptedModel(seed=3) as model, aiohttp.ClientSession() as client:
            endpoint = Endpoint(provider="scripted", base_url=model.base_url)
            async with Gateway({MODEL: endpoint}, {}) as gateway:
                one = AgentAccess("solo-1", MODEL, access().prices, access().budget)
                trial = await gateway.open_trial((one,), tmp_path / "usage.jsonl")
                sock, port = listening()
                await trial.serve(sock)
                contents = []
                for url, token in (
                    (model.base_url.removesuffix("/v1"), ""),
                    (f"http://127.0.0.1:{port}", trial.tokens["solo-1"]),
                ):
                    headers = {"Authorization": f"Bearer {token}"}
                    async with client.post(url + path, data=body, headers=headers) as answer:
                        assert answer.status == 200
                        contents.append(await answer.read())
                assert contents[0] == contents[1]
                (line,) = trial.lines()
                assert (line.result, line.streamed) == (CallResult.OK, stream)
                assert line.input_tokens == len(body) // 4 + 1
                assert line.output_tokens is not None and line.output_tokens > 8
                assert line.cached_input_tokens == 0
                assert line.finish in ("stop", "completed", "end_turn")

    asyncio.run(run())


def test_the_gateway_closes_its_trials(tmp_path: Path) -> None:
    async def run() -> None:
        endpoint = Endpoint(provider="scripted", base_url="http://127.0.0.1:9")
        async with Gateway({"m": endpoint}, {}) as gateway:
            trial = await gateway.open_trial((access(),), tmp_path / "usage.jsonl")
        assert trial.is_closed

    asyncio.run(run())


@pytest.mark.parametrize(
    ("endpoint", "name", "message"),
    [
        ({"provider": "scripted"}, "m", "'m' has no base_url"),
        ({"provider": "openai", "api_key_env": "OTHER"}, "m", "the variable OTHER"),
        ({"provider": "openai", "api_key_env": "K"}, "n", "no endpoint 'n'"),
    ],
)
def test_endpoints_that_cannot_be_used(
    tmp_path: Path, endpoint: dict[str, Any], name: str, message: str
) -> None:
    async def run() -> None:
        endpoints = {"m": Endpoint.model_validate(endpoint)}
        async with Gateway(endpoints, {"K": KEY}) as gateway:
            with pytest.raises(GatewayError, match=message):
                await gateway.open_trial((access(endpoint=name),), tmp_path / "usage.jsonl")
        assert not (tmp_path / "usage.jsonl").exists()

    asyncio.run(run())


def test_a_gateway_that_is_not_open(tmp_path: Path) -> None:
    with pytest.raises(GatewayError, match="not open"):
        asyncio.run(Gateway({}, {}).open_trial((), tmp_path / "usage.jsonl"))


def test_no_key_is_shown() -> None:
    endpoint = Endpoint(provider="openai", api_key_env="K")
    gateway = Gateway({"m": endpoint}, {"K": KEY})
    assert KEY not in repr(vars(gateway))
