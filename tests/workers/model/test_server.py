from __future__ import annotations

import asyncio
import json
import time
from typing import Any

import aiohttp
import pytest

from workers.model import PROFILES, ScriptedModel

PATHS = ["/chat/completions", "/messages", "/responses"]
TOOLS = [{"type": "function", "name": "shell", "function": {"name": "shell"}}]
PROMPT = (
    f"Event ID: {'1' * 64}\nChannel: x (#0a1b2c3d-0000-4000-8000-00000000abcd)\n"
    f"From: y ({'2' * 64})\nContent: Hello.\nTags: []"
)


def request(model: str = "scripted-solver", **more: Any) -> dict[str, Any]:
    messages = [{"role": "user", "content": PROMPT}]
    return {"model": model, "messages": messages, "input": messages, "tools": TOOLS, **more}


def ask(*bodies: tuple[str, Any], seed: int = 0, slow_s: float = 0) -> list[tuple[int, Any]]:
    """Posts bodies to paths of one server; status and body of each answer."""

    async def run() -> list[tuple[int, Any]]:
        answers: list[tuple[int, Any]] = []
        async with (
            ScriptedModel(seed=seed, slow_s=slow_s) as model,
            aiohttp.ClientSession() as client,
        ):
            for path, body in bodies:
                data = body if isinstance(body, bytes) else json.dumps(body).encode()
                async with client.post(model.base_url + path, data=data) as answer:
                    text = await answer.text()
                try:
                    answers.append((answer.status, json.loads(text)))
                except ValueError:
                    answers.append((answer.status, text))
        return answers

    return asyncio.run(run())


@pytest.mark.parametrize("path", PATHS)
def test_the_same_seed_gives_the_same_answer(path: str) -> None:
    ((_, first), (_, again)) = ask((path, request()), (path, request()), seed=5)
    ((_, other),) = ask((path, request()), seed=6)
    assert first == again
    assert first["id"] != other["id"]
    assert "messages send" in json.dumps(first)
    assert ask((path, request()), seed=5) == [(200, first)]


def test_paths_with_and_without_version() -> None:
    async def run() -> None:
        async with ScriptedModel() as model, aiohttp.ClientSession() as client:
            origin = model.base_url.removesuffix("/v1")
            for prefix in (origin, origin + "/v1"):
                for path in PATHS:
                    async with client.post(prefix + path, json=request()) as answer:
                        assert answer.status == 200
                async with client.get(prefix + "/models") as answer:
                    rows = (await answer.json())["data"]
                    assert {row["id"] for row in rows} == {f"scripted-{name}" for name in PROFILES}

    asyncio.run(run())


def test_without_a_shell_it_only_speaks() -> None:
    ((_, answer),) = ask(("/chat/completions", request(tools=[])))
    assert answer["choices"][0]["message"]["content"] == "I have no shell to act with."


@pytest.mark.parametrize("path", PATHS)
def test_models_and_bodies_that_are_none(path: str) -> None:
    answers = ask(
        (path, request("gpt-5")),
        (path, b"{"),
        (path, {"model": "scripted-solver"}),
        (path, b"[" * 100_000),
        (path, request("scripted-rate_limited")),
    )
    assert [status for status, _ in answers] == [404, 400, 400, 400, 429]
    assert "scripted-solver" in answers[0][1]["error"]["message"]
    assert all(("type" in answer) == (path == "/messages") for _, answer in answers)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("stream", [False, True])
def test_broken_answers_break_off(path: str, stream: bool) -> None:
    broken, whole = ask(
        (path, request("scripted-broken", stream=stream)), (path, request(stream=stream))
    )
    assert broken[0] == whole[0] == 200
    assert isinstance(broken[1], str)
    assert len(broken[1]) < len(str(whole[1]))
    for end in ("[DONE]", "message_stop", "response.completed"):
        assert end not in broken[1]


def test_slow_answers_are_late() -> None:
    start = time.monotonic()
    ((status, answer),) = ask(("/messages", request("scripted-slow")), slow_s=0.2)
    assert time.monotonic() - start >= 0.1
    assert (status, answer["stop_reason"]) == (200, "tool_use")


def test_what_was_said_before_counts_as_cached() -> None:
    said = [
        {"role": "user", "content": PROMPT + "x" * 4000},
        {"role": "assistant", "tool_calls": [{"id": "1", "function": {"name": "shell"}}]},
        {"role": "tool", "tool_call_id": "1", "content": "y" * 400},
    ]
    first, second = ask(
        ("/chat/completions", request(messages=said[:1])),
        ("/chat/completions", request(messages=said)),
    )
    assert first[1]["usage"]["prompt_tokens_details"]["cached_tokens"] == 0
    usage = second[1]["usage"]
    assert usage["prompt_tokens"] > 1000
    assert 1000 < usage["prompt_tokens_details"]["cached_tokens"] < usage["prompt_tokens"] - 100


def test_an_address_that_is_taken() -> None:
    async def run() -> None:
        async with ScriptedModel() as model:
            port = int(model.base_url.removesuffix("/v1").rpartition(":")[2])
            with pytest.raises(OSError, match="address already in use"):
                async with ScriptedModel(port=port):
                    pass

    asyncio.run(run())


def test_it_has_no_address_unless_served() -> None:
    with pytest.raises(RuntimeError):
        _ = ScriptedModel().base_url
