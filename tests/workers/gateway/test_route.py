from __future__ import annotations

import json
from typing import Any

import pytest

from workers.contract.endpoint import Dialect, Endpoint
from workers.gateway.ledger import CallResult
from workers.gateway.reading import MOST_TOKENS
from workers.gateway.refusal import Refusal
from workers.gateway.route import (
    Asked,
    dialect_of,
    model_of,
    read_request,
    result_of_status,
    upstream_url,
)


@pytest.mark.parametrize(
    ("path", "dialect"),
    [
        ("/v1/chat/completions", "chat"),
        ("/chat/completions", "chat"),
        ("/v1/responses", "responses"),
        ("/responses", "responses"),
        ("/v1/messages", "messages"),
        ("/messages", "messages"),
        ("/", None),
        ("/v1/", None),
        ("/v1/models", None),
        ("/v1/v1/messages", None),
        ("//messages", None),
        ("/v1/messages/count_tokens", None),
        ("/serving-endpoints/m/invocations", "chat"),
        ("/serving-endpoints/m/n/invocations", None),
        ("/ai-gateway/openai/v1/responses", "responses"),
        ("/ai-gateway/anthropic/v1/messages", "messages"),
        ("/ai-gateway/mlflow/v1/chat/completions", "chat"),
        ("/ai-gateway/mlflow/v1/models", None),
    ],
)
def test_paths(path: str, dialect: Dialect | None) -> None:
    assert dialect_of(path) == dialect


@pytest.mark.parametrize(
    ("provider", "base", "dialect", "url"),
    [
        ("anthropic", None, "messages", "https://api.anthropic.com/v1/messages"),
        ("openai", None, "chat", "https://api.openai.com/v1/chat/completions"),
        ("openai", None, "responses", "https://api.openai.com/v1/responses"),
        ("openrouter", None, "chat", "https://openrouter.ai/api/v1/chat/completions"),
        ("openai", "http://h:1/v1/", "chat", "http://h:1/v1/chat/completions"),
        ("anthropic", "http://h:1", "messages", "http://h:1/v1/messages"),
        ("scripted", "http://h:1/v1", "messages", "http://h:1/v1/messages"),
        ("databricks", "http://h:1/", "chat", "http://h:1/serving-endpoints/a%2Fb/invocations"),
        (
            "databricks_v2",
            "http://h:1",
            "messages",
            "http://h:1/ai-gateway/anthropic/v1/messages",
        ),
    ],
)
def test_urls(provider: Any, base: str | None, dialect: Dialect, url: str) -> None:
    key = None if provider == "scripted" else "K"
    endpoint = Endpoint(provider=provider, api_key_env=key, base_url=base)
    assert upstream_url(endpoint, dialect, "", "a/b") == url
    assert upstream_url(endpoint, dialect, "a=%2F", "a/b") == url + "?a=%2F"


@pytest.mark.parametrize(
    ("asked", "sent"),
    [
        ("", "api-version=2026-01-01"),
        ("b=%2F&&c", "b=%2F&&c&api-version=2026-01-01"),
        ("api-version=1999&b=1", "b=1&api-version=2026-01-01"),
        ("b=1&api%2Dversion=1999&api-version", "b=1&api-version=2026-01-01"),
    ],
)
def test_an_endpoints_own_parameters_stand_once(asked: str, sent: str) -> None:
    endpoint = Endpoint(
        provider="openai",
        api_key_env="K",
        base_url="http://h",
        query={"api-version": "2026-01-01"},
    )
    assert upstream_url(endpoint, "chat", asked) == f"http://h/chat/completions?{sent}"


@pytest.mark.parametrize(
    ("path", "body", "fits"),
    [
        ("/serving-endpoints/m/invocations", {}, True),
        ("/serving-endpoints/m/invocations", {"model": "m"}, True),
        ("/serving-endpoints/m/invocations", {"model": "other"}, False),
        ("/serving-endpoints/other/invocations", {}, False),
        ("/serving-endpoints/other/invocations", {"model": "m"}, False),
        ("/v1/chat/completions", {}, False),
    ],
)
def test_a_path_may_name_the_model(path: str, body: dict[str, str], fits: bool) -> None:
    asked = read_request("chat", json.dumps(body).encode(), "m", path)
    assert isinstance(asked, Asked) is fits


def test_the_name_that_a_body_must_carry() -> None:
    assert model_of("name", Endpoint(provider="scripted")) == "name"
    assert model_of("name", Endpoint(provider="scripted", model="real")) == "real"


@pytest.mark.parametrize(
    ("dialect", "more", "limit"),
    [
        ("chat", {}, None),
        ("chat", {"max_tokens": 5}, 5),
        ("chat", {"max_completion_tokens": 7, "max_tokens": 5}, 7),
        ("responses", {"max_output_tokens": 9, "max_tokens": 5}, 9),
        ("messages", {"max_tokens": 11}, 11),
        ("chat", {"max_tokens": 5, "n": 3}, 15),
        ("chat", {"max_tokens": 5, "n": 0}, 5),
        ("messages", {"max_tokens": 5, "n": 3}, 5),
        ("messages", {"max_tokens": True}, None),
        ("messages", {"max_tokens": -1}, None),
        ("messages", {"max_tokens": "5"}, None),
        ("messages", {"max_tokens": 10**400}, MOST_TOKENS),
    ],
)
def test_output_limits(dialect: Dialect, more: dict[str, Any], limit: int | None) -> None:
    body = json.dumps({"model": "m", **more}).encode()
    assert read_request(dialect, body, "m") == Asked(dialect, "m", False, limit)


@pytest.mark.parametrize(("value", "streamed"), [(True, True), (False, False), (1, False)])
def test_streams(value: object, streamed: bool) -> None:
    asked = read_request("chat", json.dumps({"model": "m", "stream": value}).encode(), "m")
    assert isinstance(asked, Asked)
    assert asked.streamed is streamed


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        (b"", 400, "not JSON"),
        (b"{}{}", 400, "not JSON"),
        (b"[" * 100_000, 400, "not JSON"),
        (b"\xff\xfe", 400, "not JSON"),
        (b'"m"', 400, "not a JSON object"),
        (b"{}", 403, "'None' is not the one"),
        (b'{"model": "n"}', 403, "'n' is not the one of this agent's endpoint, 'm'"),
        (b'{"model": ["m"]}', 403, "not the one"),
        (b'{"model": "m", "models": []}', 403, "'models'"),
        (b'{"model": "m", "Model": "n"}', 403, "'Model'"),
        (b'{"MODEL": "n", "model": "m"}', 403, "'MODEL'"),
        (b'{"model": "n", "model": "m"}', 400, "twice"),
        (b'{"model": "m", "a": [{"b": 1, "b": 2}]}', 400, "twice"),
    ],
)
def test_refused_bodies(body: bytes, status: int, words: str) -> None:
    refusal = read_request("chat", body, "m")
    assert isinstance(refusal, Refusal)
    assert (refusal.status, refusal.result) == (status, CallResult.REFUSED_ROUTE)
    assert words in refusal.message


@pytest.mark.parametrize(
    ("statuses", "result"),
    [
        ((200, 201, 299), CallResult.OK),
        ((429,), CallResult.RATE_LIMITED),
        ((401, 402, 403), CallResult.PROVIDER_AUTH),
        ((400, 404, 413, 422), CallResult.CLIENT_ERROR),
        ((408, 499, 500, 503, 529, 599), CallResult.PROVIDER_5XX),
        ((301, 304, 199), CallResult.PROVIDER_MALFORMED),
    ],
)
def test_statuses(statuses: tuple[int, ...], result: CallResult) -> None:
    assert {result_of_status(status) for status in statuses} == {result}
