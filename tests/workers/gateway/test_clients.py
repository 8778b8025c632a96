"""The official clients of OpenAI and Anthropic see the same with the gateway and without."""

from __future__ import annotations

import asyncio
import statistics
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anthropic
import openai
import pytest

from tests.workers.gateway.upstreams import access, listening
from workers.contract.endpoint import Endpoint
from workers.gateway import AgentAccess, CallResult, Gateway, GatewayTrial
from workers.model import ScriptedModel

pytestmark = pytest.mark.long

PROMPT = (
    f"Event ID: {'1' * 64}\nChannel: x (#0a1b2c3d-0000-4000-8000-00000000abcd)\n"
    f"From: y ({'2' * 64})\nContent: Hello, ü.\nTags: []"
)
PIXEL = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5E"
    "rkJggg=="
)
SCHEMA = {"type": "object", "properties": {"command": {"type": "string"}}}


@dataclass(frozen=True)
class Side:
    """The clients of one way to the scripted endpoint."""

    openai: openai.AsyncOpenAI
    anthropic: anthropic.AsyncAnthropic


@dataclass(frozen=True)
class Stage:
    direct: Side
    through: Side
    trial: GatewayTrial
    model: ScriptedModel


@asynccontextmanager
async def stage(folder: Path, name: str = "scripted-solver", **model: Any) -> AsyncIterator[Stage]:
    """The scripted endpoint, and a gateway in front of it."""
    async with ScriptedModel(seed=3, **model) as scripted:
        endpoint = Endpoint(provider="scripted", base_url=scripted.base_url)
        async with Gateway({name: endpoint}, {}) as gateway:
            one = AgentAccess("solo-1", name, access().prices, access().budget)
            trial = await gateway.open_trial((one,), folder / "usage.jsonl")
            sock, port = listening()
            await trial.serve(sock)
            direct = side(scripted.base_url.removesuffix("/v1"), "no-key")
            through = side(f"http://127.0.0.1:{port}", trial.tokens["solo-1"])
            try:
                yield Stage(direct, through, trial, scripted)
            finally:
                for each in (direct, through):
                    await each.openai.close()
                    await each.anthropic.close()
                await trial.close()


def side(url: str, key: str) -> Side:
    return Side(
        openai.AsyncOpenAI(api_key=key, base_url=f"{url}/v1", max_retries=0),
        anthropic.AsyncAnthropic(api_key=key, base_url=url, max_retries=0),
    )


CHAT: dict[str, Any] = {
    "messages": [
        {"role": "system", "content": "Be brief."},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": PROMPT},
                {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}},
            ],
        },
    ],
    "max_completion_tokens": 100,
    "extra_body": {"a_field_of_tomorrow": {"x": [1, None, "ü"]}},
}
CHAT_TOOLS = [{"type": "function", "function": {"name": "shell", "parameters": SCHEMA}}]
RESPONSES: dict[str, Any] = {
    "input": [
        {
            "role": "user",
            "content": [
                {"type": "input_text", "text": PROMPT},
                {"type": "input_image", "image_url": f"data:image/png;base64,{PIXEL}"},
            ],
        }
    ],
    "reasoning": {"effort": "low"},
}
RESPONSE_TOOLS = [{"type": "function", "name": "shell", "parameters": SCHEMA, "strict": False}]
MESSAGES: dict[str, Any] = {
    "max_tokens": 100,
    "system": [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}],
    "messages": [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": PROMPT},
                {
                    "type": "image",
                    "source": {"type": "base64", "media_type": "image/png", "data": PIXEL},
                },
            ],
        }
    ],
}
MESSAGE_TOOLS = [{"name": "shell", "input_schema": SCHEMA}]

Ask = Callable[[Side, str, bool], Awaitable[list[Any]]]


async def chat(side: Side, model: str, tools: bool) -> list[Any]:
    more = {"tools": CHAT_TOOLS} if tools else {}
    answer = await side.openai.chat.completions.create(model=model, **CHAT, **more)
    return [answer.model_dump()]


async def chat_stream(side: Side, model: str, tools: bool) -> list[Any]:
    more: dict[str, Any] = {"tools": CHAT_TOOLS} if tools else {}
    stream = await side.openai.chat.completions.create(
        model=model, stream=True, stream_options={"include_usage": True}, **CHAT, **more
    )
    return [chunk.model_dump() async for chunk in stream]


async def responses(side: Side, model: str, tools: bool) -> list[Any]:
    more = {"tools": RESPONSE_TOOLS} if tools else {}
    answer = await side.openai.responses.create(model=model, **RESPONSES, **more)
    return [answer.model_dump()]


async def responses_stream(side: Side, model: str, tools: bool) -> list[Any]:
    more: dict[str, Any] = {"tools": RESPONSE_TOOLS} if tools else {}
    async with side.openai.responses.stream(model=model, **RESPONSES, **more) as stream:
        # The client warns of its own generic types.
        events = [event.model_dump(warnings=False) async for event in stream]
        final = await stream.get_final_response()
    return [*events, final.model_dump(warnings=False)]


async def messages(side: Side, model: str, tools: bool) -> list[Any]:
    more = {"tools": MESSAGE_TOOLS} if tools else {}
    answer = await side.anthropic.messages.create(model=model, **MESSAGES, **more)
    return [answer.model_dump()]


async def messages_stream(side: Side, model: str, tools: bool) -> list[Any]:
    more: dict[str, Any] = {"tools": MESSAGE_TOOLS} if tools else {}
    async with side.anthropic.messages.stream(model=model, **MESSAGES, **more) as stream:
        events = [event.model_dump() async for event in stream]
        final = await stream.get_final_message()
    return [*events, final.model_dump()]


ASKS = [chat, chat_stream, responses, responses_stream, messages, messages_stream]


@pytest.mark.parametrize("tools", [False, True], ids=["text", "tool"])
@pytest.mark.parametrize("ask", ASKS, ids=lambda ask: ask.__name__)
def test_the_same_answer_chunk_by_chunk(tmp_path: Path, ask: Ask, tools: bool) -> None:
    async def run() -> None:
        async with stage(tmp_path) as on:
            direct = await ask(on.direct, "scripted-solver", tools)
            through = await ask(on.through, "scripted-solver", tools)
            assert through == direct
            assert ("'name': 'shell'" in str(direct)) is tools
            (line,) = on.trial.lines()
            assert line.result is CallResult.OK
            assert line.reasoning_tokens is not None
            assert on.model.tally.requests == on.model.tally.reports == 2
            assert line.output_tokens == on.model.tally.output_tokens // 2
            assert line.input_tokens == on.model.tally.input_tokens // 2

    asyncio.run(run())


@pytest.mark.parametrize("name", ["scripted-rate_limited", "scripted-broken"])
@pytest.mark.parametrize("ask", ASKS, ids=lambda ask: ask.__name__)
def test_the_same_error(tmp_path: Path, ask: Ask, name: str) -> None:
    async def outcome(side: Side) -> tuple[type[Exception], str, Any] | list[Any]:
        try:
            return await ask(side, name, False)
        except Exception as error:  # noqa: BLE001 - whatever a client makes of it
            return type(error), str(error), getattr(error, "status_code", None)

    async def run() -> None:
        async with stage(tmp_path, name) as on:
            direct = await outcome(on.direct)
            assert await outcome(on.through) == direct
            if name == "scripted-rate_limited":
                assert isinstance(direct, tuple) and direct[0].__name__ == "RateLimitError"
                assert on.trial.lines()[-1].result is CallResult.RATE_LIMITED
            else:
                assert on.trial.lines()[-1].result is CallResult.PROVIDER_MALFORMED

    asyncio.run(run())


def test_what_the_gateway_refuses_is_an_error_of_the_clients(tmp_path: Path) -> None:
    async def run() -> None:
        async with stage(tmp_path) as on:
            with pytest.raises(openai.PermissionDeniedError, match="not the one of this agent"):
                await chat(on.through, "another", False)
            with pytest.raises(anthropic.PermissionDeniedError, match="not the one of this"):
                await messages(on.through, "another", False)
            stranger = side(str(on.through.anthropic.base_url).rstrip("/"), "wrong")
            with pytest.raises(openai.AuthenticationError):
                await chat(stranger, "scripted-solver", False)
            with pytest.raises(anthropic.AuthenticationError):
                await messages(stranger, "scripted-solver", False)
            await stranger.openai.close()
            await stranger.anthropic.close()

    asyncio.run(run())


def test_the_first_chunk_comes_before_the_last_is_sent(tmp_path: Path) -> None:
    async def run() -> None:
        async with stage(tmp_path, event_s=0.15) as on:
            stream = await on.through.openai.chat.completions.create(
                model="scripted-solver", stream=True, **CHAT
            )
            events = aiter(stream)
            first = await anext(events)
            assert first.choices[0].delta.role == "assistant"
            # The endpoint counts an answer when its last event is out.
            assert on.model.tally.requests == 1
            assert on.trial.lines() == ()
            rest = [event async for event in events]
            assert rest[-1].choices[0].finish_reason == "stop"

    asyncio.run(run())


ROUNDS = 60
ADDED_MS = 5.0


def test_what_the_gateway_adds_to_a_call(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A B A B: the same request in turn without and with the gateway.

    Both ends and the gateway share one thread, so what it adds is its processor time; the time
    on the clock is that and what other programs of the machine take meanwhile from either way.
    """

    async def timed(side: Side) -> tuple[float, float]:
        clock, processor = time.perf_counter(), time.process_time()
        await messages(side, "scripted-solver", True)
        return time.perf_counter() - clock, time.process_time() - processor

    async def run() -> list[float]:
        async with stage(tmp_path) as on:
            rounds = [(await timed(on.direct), await timed(on.through)) for _ in range(ROUNDS + 5)]
        columns = zip(*((*direct, *through) for direct, through in rounds[5:]), strict=True)
        return [1000 * statistics.median(column) for column in columns]

    direct_ms, direct_cpu_ms, through_ms, through_cpu_ms = asyncio.run(run())
    with capsys.disabled():
        sys.stdout.write(
            f"\nmedian of {ROUNDS}: {direct_ms:.2f} ms, {through_ms:.2f} ms with the gateway "
            f"(processor: {direct_cpu_ms:.2f} ms, {through_cpu_ms:.2f} ms)\n"
        )
    assert through_cpu_ms - direct_cpu_ms <= ADDED_MS
    assert through_ms - direct_ms <= max(ADDED_MS, direct_ms)
