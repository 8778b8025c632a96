"""The environment of the production stack, and the way from each provider's variables."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from tests.buzz_stand_in import environment, specification
from tests.buzz_stand_in.building import build
from tests.buzz_stand_in.environment import Case, cases, difference
from workers.contract.budget import Spending
from workers.contract.buzz import PROVIDERS, buzz_dialect, openai_api
from workers.contract.condition import Budget, Prices
from workers.contract.endpoint import Dialect, Endpoint
from workers.gateway import AgentAccess, CallResult, Gateway, LedgerLine
from workers.trial.token_check import compare, read_told

PRICES = Prices(
    input_per_million_usd=0.0, cached_input_per_million_usd=0.0, output_per_million_usd=0.0
)
KEY = "the-providers-key"


@pytest.mark.parametrize("case", list(cases()), ids=lambda case: case.name)
def test_what_is_set_is_what_the_specification_gives(case: Case) -> None:
    assert difference(case, environment.environment(case)) == []


def test_the_command_prints_an_empty_difference(capsys: pytest.CaptureFixture[str]) -> None:
    assert environment.main() == 0
    assert capsys.readouterr().out.endswith("difference: none\n")


def test_every_provider_of_the_specification_is_led_to_the_gateway() -> None:
    assert {name: (each.key, each.base_url) for name, each in PROVIDERS.items()} == (
        specification.PROVIDERS
    )


@pytest.mark.parametrize("row", specification.TABLE, ids=lambda row: row.name)
def test_the_stand_in_sees_what_is_missing_or_otherwise(row: specification.Variable) -> None:
    sound = environment.environment(next(cases()))
    without = {name: value for name, value in sound.items() if name != row.name}
    assert (f"{row.name} is missing" in "".join(specification.problems(without))) is row.required
    assert specification.problems({**sound, row.name: "something else\n"})


def test_the_stand_in_refuses_what_the_specification_does_not_know() -> None:
    sound = environment.environment(next(cases()))
    assert specification.problems({**sound, "BUZZ_ACP_AGENTS_": "1"}) == [
        "BUZZ_ACP_AGENTS_ is unknown to the specification"
    ]
    assert specification.problems({**sound, "OPENAI_COMPAT_API_KEY": "k"}) == [
        "OPENAI_COMPAT_API_KEY is another provider's"
    ]
    other = {**sound, "NOSTR_PRIVATE_KEY": "0" * 63 + "1"}
    assert "NOSTR_PRIVATE_KEY is not" in specification.problems(other)[0]
    forged = {**sound, "BUZZ_PRIVATE_KEY": "0" * 63 + "1", "NOSTR_PRIVATE_KEY": "0" * 63 + "1"}
    assert "no attestation of this key" in specification.problems(forged)[0]


def test_the_program_itself_refuses(tmp_path: Path) -> None:
    acp = build(tmp_path) / "buzz-acp"
    sound = environment.environment(next(cases()))
    bad = {**sound, "BUZZ_ACP_SUBSCRIBE": "all", "PATH": os.environ["PATH"]}
    ended = subprocess.run([acp], env=bad, capture_output=True, text=True, check=False)
    assert ended.returncode == 2
    assert "BUZZ_ACP_SUBSCRIBE is not as 4.1, 6.4 has it, expected mentions" in ended.stderr


@pytest.mark.parametrize(
    ("base", "said", "api"),
    [
        (None, None, "responses"),
        ("https://eu.api.openai.com/v1", None, "responses"),
        ("https://openai.com.example.org/v1", None, "chat"),
        ("https://notopenai.com/v1", None, "chat"),
        ("http://127.0.0.1:8000/v1", "auto", "chat"),
        (None, "chat", "chat"),
        ("http://127.0.0.1:8000/v1", "responses", "responses"),
    ],
)
def test_the_dialect_is_that_of_the_real_host(base: str | None, said: str | None, api: str) -> None:
    env = {} if said is None else {"OPENAI_COMPAT_API": said}
    endpoint = Endpoint(provider="openai", api_key_env="K", base_url=base, env=env)
    assert openai_api(endpoint) == api
    assert buzz_dialect(endpoint) == api
    found = environment.environment(Case("x", endpoint))
    assert found["OPENAI_COMPAT_API"] == api


def test_a_base_url_in_the_endpoints_env_is_the_gateways_and_not_the_agents() -> None:
    # Buzz's own endpoint files have no other place for it.
    env = {"OPENAI_COMPAT_BASE_URL": "http://models.example.org/v1", "OTHER": "kept"}
    endpoint = Endpoint(provider="openai", api_key_env="MY_ACCOUNT", env=env)
    assert endpoint.upstream == "http://models.example.org/v1"
    found = environment.environment(Case("x", endpoint))
    assert found["OPENAI_COMPAT_BASE_URL"] == "http://localhost:3601/v1"
    assert found["OPENAI_COMPAT_API"] == "chat"
    assert found["OPENAI_COMPAT_API_KEY"] == found["MY_ACCOUNT"] == "token-of-the-gateway"
    assert found["OTHER"] == "kept"


def test_a_scripted_endpoint_is_one_of_openais_kind() -> None:
    found = environment.environment(Case("x", Endpoint(provider="scripted")))
    assert (found["BUZZ_AGENT_PROVIDER"], found["OPENAI_COMPAT_API"]) == ("openai", "chat")


# By the gateway


def _answer(path: str) -> dict[str, Any]:
    """One answer in the dialect of a path, with counts."""
    if path.endswith("/messages"):
        usage = {"input_tokens": 7, "output_tokens": 5, "cache_read_input_tokens": 4}
        content = [{"type": "text", "text": "done"}]
        return {
            "type": "message",
            "content": content,
            "stop_reason": "end_turn",
            "usage": {**usage, "cache_creation_input_tokens": 2},
        }
    if path.endswith("/responses"):
        text = {"type": "output_text", "text": "done"}
        item = {"type": "message", "role": "assistant", "content": [text]}
        usage = {"input_tokens": 13, "output_tokens": 5, "total_tokens": 18}
        details = {"input_tokens_details": {"cached_tokens": 4}}
        return {
            "object": "response",
            "status": "completed",
            "output": [item],
            "usage": {**usage, **details},
        }
    usage = {"prompt_tokens": 13, "completion_tokens": 5, "total_tokens": 18}
    message = {"role": "assistant", "content": "done"}
    return {
        "object": "chat.completion",
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": {**usage, "prompt_tokens_details": {"cached_tokens": 4}},
    }


ROUTES: dict[str, tuple[str, str, Dialect]] = {
    "anthropic": ("", "/v1/messages", "messages"),
    "openai": ("/v1", "/v1/chat/completions", "chat"),
    "openai responses": ("/v1", "/v1/responses", "responses"),
    "openrouter": ("/api/v1", "/api/v1/chat/completions", "chat"),
    "databricks": ("", "/serving-endpoints/model-x/invocations", "chat"),
    "databricks_v2": ("", "/ai-gateway/mlflow/v1/chat/completions", "chat"),
}
"""Provider to its base URL's path, the whole path of a request, and its dialect."""


@pytest.mark.long
@pytest.mark.parametrize("name", ROUTES)
def test_a_call_reaches_its_provider_with_the_providers_key(tmp_path: Path, name: str) -> None:
    base, path, dialect = ROUTES[name]
    provider, _, api = name.partition(" ")
    seen: list[web.Request] = []

    async def answer(request: web.Request) -> web.Response:
        seen.append(request)
        await request.read()
        return web.json_response(_answer(request.path))

    async def go() -> tuple[list[LedgerLine], bytes]:
        app = web.Application()
        app.router.add_post("/{rest:.*}", answer)
        runner = web.AppRunner(app)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        endpoint = Endpoint.model_validate(
            {
                "provider": provider,
                "api_key_env": "K",
                "base_url": f"http://127.0.0.1:{runner.addresses[0][1]}{base}",
                "env": {"OPENAI_COMPAT_API": api} if api else {},
            }
        )
        assert buzz_dialect(endpoint) == (None if name == "databricks_v2" else dialect)
        variables = environment.environment(Case("x", endpoint))
        try:
            async with Gateway({"model-x": endpoint}, {"K": KEY}) as gateway:
                access = [AgentAccess("solo-1", "model-x", PRICES, Budget())]
                trial = await gateway.open_trial(
                    access, tmp_path / "usage.jsonl", trial_max_cost_usd=None, try_="t"
                )
                listener = socket.create_server(("127.0.0.1", 0))
                port = listener.getsockname()[1]
                await trial.serve(listener)
                told = await asyncio.to_thread(
                    _prompted, tmp_path, variables, port, trial.tokens["solo-1"]
                )
                await trial.close()
                return list(trial.lines()), told
        finally:
            await runner.cleanup()

    lines, told = asyncio.run(go())
    (request,) = seen
    assert request.path == path
    keys = request.headers.get("x-api-key", request.headers.get("Authorization", ""))
    assert keys.removeprefix("Bearer ") == KEY
    (line,) = lines
    assert (line.result, line.dialect, line.model) == (CallResult.OK, dialect, "model-x")
    assert (line.input_tokens, line.cached_input_tokens, line.output_tokens) == (13, 4, 5)
    assert compare("solo-1", read_told(told), lines) is None


def _prompted(folder: Path, variables: dict[str, str], port: int, token: str) -> bytes:
    """What ``buzz-agent`` writes on standard error in one turn; blocks."""
    programs = build(folder / "bin")
    mcp = {"name": "buzz-dev-mcp", "command": str(programs / "buzz-dev-mcp"), "env": {}}
    requests = [
        ("initialize", {}),
        ("session/new", {"cwd": "/", "systemPrompt": "Be brief.", "mcpServers": [mcp]}),
        ("session/prompt", {"sessionId": "ses_1", "prompt": "Say something."}),
    ]
    lines = [
        json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        for number, (method, params) in enumerate(requests)
    ]
    given = {
        name: value.replace(":3601", f":{port}").replace("token-of-the-gateway", token)
        for name, value in variables.items()
    }
    given["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    ended = subprocess.run(
        [programs / "buzz-agent"],
        input="\n".join(lines) + "\n",
        env=given,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert json.loads(ended.stdout.splitlines()[-1])["result"] == {"stopReason": "end_turn"}
    return ended.stderr.encode()


# Tokens


def _line(given: int, cached: int | None, made: int, result: str = "ok") -> LedgerLine:
    return LedgerLine.model_validate(
        {
            "request": 1,
            "agent": "solo-1",
            "endpoint": "model-x",
            "dialect": "chat",
            "model": "model-x",
            "started_s": 0.0,
            "seconds": 1.0,
            "status": 200,
            "result": CallResult(result),
            "input_tokens": given,
            "cached_input_tokens": cached,
            "output_tokens": made,
            "cost_usd": 0.0,
            "streamed": False,
            "retry": None,
            "finish": "stop",
            "counted": Spending(),
        }
    )


CALL = (
    "INFO llm: call completed input_tokens=Some({}) cached_input_tokens={} output_tokens=Some({})\n"
)
SUMMARY = "INFO llm: summarize completed\n"


@pytest.mark.parametrize(
    ("log", "lines", "agree"),
    [
        ("", [], True),
        (CALL.format(10, "None", 5), [_line(10, 0, 5)], True),
        (CALL.format(10, "Some(3)", 5), [_line(10, 3, 5)], True),
        ("\x1b[32m" + CALL.format(10, "None", 5), [_line(10, None, 5)], True),
        (CALL.format(10, "None", 5), [_line(10, 3, 5)], False),
        (CALL.format(10, "None", 5), [], False),
        ("", [_line(10, 0, 5)], False),
        # What failed at the provider is in neither.
        ("", [_line(10, 0, 5, "provider_5xx")], True),
        # Equal calls are counted, not only looked for.
        (CALL.format(10, "None", 5) * 2, [_line(10, 0, 5)], False),
        # A summary's counts are in the ledger alone; two of them are one too many.
        (SUMMARY, [_line(900, 0, 50)], True),
        (SUMMARY, [_line(900, 0, 50), _line(10, 0, 5)], False),
    ],
)
def test_each_call_of_the_log_takes_its_own_line_of_the_ledger(
    log: str, lines: list[LedgerLine], agree: bool
) -> None:
    assert (compare("solo-1", read_told(log.encode()), lines) is None) is agree
