# ruff: noqa: E501 - tables of refusals, one a line
from __future__ import annotations

import json
from pathlib import Path

import pytest

from scheduler.manifest.endpoints import (
    find_endpoint_file,
    load_endpoints,
    missing_keys,
    open_endpoints,
)
from scheduler.manifest.faults import ManifestError
from tests.scheduler.manifest.builders import write

SHIPPED = Path(__file__).parents[3] / "deploy" / "endpoints"


def test_json_and_yaml_say_the_same(tmp_path: Path) -> None:
    data = {"m": {"provider": "openai", "api_key_env": "K", "env": {"RUST_LOG": "info"}}}
    as_json = load_endpoints(write(tmp_path / "e.json", json.dumps(data)))
    text = "m:\n  provider: openai\n  api_key_env: K\n  env: {RUST_LOG: info}\n"
    assert as_json == load_endpoints(write(tmp_path / "e.yaml", text))


@pytest.mark.parametrize(
    ("text", "line", "field", "words", "nearest"),
    [
        ("m: {provider: antropic, api_key_env: K}", 1, "m.provider", "expected 'anthropic'", "anthropic"),
        ("m: {provider: openai}", 1, "m.provider", "provider 'openai' needs api_key_env", None),
        ("m:\n  provider: openai\n  api_key: sk-1\n", 3, "m.api_key", "unknown field", "api_key_env"),
        ("m:\n  provider: openai\n  api_key_env: sk-ant-1\n", 3, "m.api_key_env", "of the form", None),
        ("m: {provider: openai, api_key_env: K, base_url: ftp://h}", 1, "m.base_url", "http://", None),
        ("m: {provider: openai, api_key_env: K, base_url: 'http://'}", 1, "m.base_url", "with a host", None),
        ("m: {provider: openai, api_key_env: K, base_url: 'http://h:x'}", 1, "m.base_url", "with a host", None),
        ("m: {provider: openai, api_key_env: K, base_url: 'http://[h'}", 1, "m.base_url", "with a host", None),
        ("m: {provider: openai, api_key_env: K, base_url: 'http://u:sk-1@h'}", 1, "m.base_url", "no user", None),
        ("m: {provider: openai, api_key_env: K, base_url: 'http://h?key=sk-1'}", 1, "m.base_url", "query", None),
        ("m: {provider: openai, api_key_env: K, env: {BUZZ_AUTH_TAG: sk-1}}", 1, "m.env", "may not set BUZZ_AUTH_TAG", None),
        ("m: {provider: openai, api_key_env: K, env: {OPENAI_API_KEY: hidden}}", 1, "m.env", "would enter the agent's container", None),
        ("m: {provider: openai, api_key_env: K, env: {RUST_LOG: sk-12345678}}", 1, "m.env", "would enter the agent's container", None),
        ("m: {provider: openai, api_key_env: K, query: {access_token: hidden}}", 1, "m.query", "URLs are recorded", None),
        ("m: {provider: openai, api_key_env: K, query: {v: sk-12345678}}", 1, "m.query", "URLs are recorded", None),
        ("m: {provider: openai, api_key_env: K, extra_headers: {X-Secret: hidden}}", 1, "m.extra_headers", "name a variable in extra_headers_env", None),
        ("m: {provider: openai, api_key_env: K, extra_headers: {Authorization: Bearer x}}", 1, "m.extra_headers", "name a variable in extra_headers_env", None),
        ("m: {provider: openai, api_key_env: K, extra_headers: {Host: h}}", 1, "m.extra_headers", "may not set host: the gateway does", None),
        ("m: {provider: openai, api_key_env: K, extra_headers: {X-A: \"a\\nb\"}}", 1, "m.extra_headers.X-A", "of the form", None),
        ("m: {provider: openai, api_key_env: K, extra_headers: {'X A': a}}", 1, 'm.extra_headers["X A"]', "of the form", None),
        ("m: {provider: openai, api_key_env: K, extra_headers: {X-A: a}, extra_headers_env: {x-a: A}}", 1, "m.extra_headers", "set x-a twice", None),
        ("m: {provider: openai, api_key_env: K, extra_headers_env: {X-A: sk-1}}", 1, "m.extra_headers_env.X-A", "of the form", None),
        ("m: {provider: openai, api_key_env: K, key_header: Host}", 1, "m.key_header", "the gateway needs it", None),
        ("m: {provider: openai, api_key_env: K, key_header: api-key, extra_headers: {Api-Key: a}}", 1, "m.extra_headers", "by its name", None),
        ("m: {provider: openai, api_key_env: K, proxy: 'socks5://p:1'}", 1, "m.proxy", "an http:// URL", None),
        ("m: {provider: openai, api_key_env: K, proxy: 'http://u:sk-1@p:1'}", 1, "m.proxy", "no user and no password", None),
        ("m: {provider: openai, api_key_env: K, proxy: 'http://[p'}", 1, "m.proxy", "an http:// URL", None),
        ("m: {provider: openai, api_key_env: K, ca_bundle: ca.pem}", 1, "m.ca_bundle", "of the form", None),
        ("m: {provider: openai, api_key_env: K, path: 'a?key=sk-1'}", 1, "m.path", "of the form", None),
        ("m: {provider: openai, api_key_env: K, stream_usage: 1}", 1, "m.stream_usage", "expected true or false", None),
        ("m: {provider: openai, api_key_env: K, env: {A: 1}}", 1, "m.env.A", "expected text", None),
        ("m: sk-1", 1, "m", "expected a mapping", None),
        ("- sk-1", 1, "", "expected a mapping, found a list", None),
    ],
)  # fmt: skip
def test_refuses_and_quotes_no_secret(
    tmp_path: Path, text: str, line: int, field: str, words: str, nearest: str | None
) -> None:
    path = write(tmp_path / "e.yaml", text)
    with pytest.raises(ManifestError) as caught:
        load_endpoints(path)
    fault = caught.value.faults[0]
    assert (fault.file, fault.line, fault.field) == (str(path), line, field)
    assert fault.nearest == nearest
    assert words in fault.message
    assert "sk-" not in str(caught.value)


def test_a_missing_key_variable_is_named_with_file_and_line(tmp_path: Path) -> None:
    text = "a: {provider: scripted}\nb:\n  provider: openai\n  api_key_env: B_KEY\n"
    path = write(tmp_path / "e.yaml", text)
    loaded = open_endpoints(path)
    for environment in ({}, {"B_KEY": ""}):
        (fault,) = missing_keys(loaded, ["a", "b", "unknown"], environment)
        assert str(fault) == (
            f"{path}:4: b.api_key_env: "
            "the environment variable B_KEY must hold the key of 'b'; it is not set"
        )
    assert missing_keys(loaded, ["a", "b"], {"B_KEY": "k"}) == ()
    key = write(tmp_path / "key", "k\n")
    assert missing_keys(loaded, ["b"], {"B_KEY_FILE": str(key)}) == ()
    assert missing_keys(loaded, ["b"], {"B_KEY": "", "B_KEY_FILE": str(key)}) == ()
    for environment, words in (
        ({"B_KEY_FILE": str(write(tmp_path / "empty", "\n"))}, "it is empty"),
        ({"B_KEY_FILE": str(tmp_path / "none")}, "cannot be read"),
        ({"B_KEY_FILE": str(tmp_path)}, "cannot be read"),
        ({"B_KEY": "two\nlines"}, "characters that no header may carry"),
        ({"B_KEY": "  "}, "it is not set"),
    ):
        (fault,) = missing_keys(loaded, ["b"], environment)
        assert words in str(fault)
    assert missing_keys(loaded, ["a"], {}) == ()


def test_a_header_that_is_secret_is_needed_like_a_key(tmp_path: Path) -> None:
    text = "b:\n  provider: openai\n  api_key_env: B\n  extra_headers_env: {X-Team-Key: TEAM}\n"
    loaded = open_endpoints(write(tmp_path / "e.yaml", text))
    (fault,) = missing_keys(loaded, ["b"], {"B": "k"})
    assert str(fault).endswith(
        ":4: b.extra_headers_env: the environment variable TEAM must hold a header of 'b'; "
        "it is not set"
    )
    assert missing_keys(loaded, ["b"], {"B": "k", "TEAM": "t"}) == ()


def test_a_shipped_file_is_found_by_endpoint(tmp_path: Path) -> None:
    write(tmp_path / "a.json", "not json")
    write(tmp_path / "README.md", "m: {provider: scripted}")
    write(tmp_path / "b.yaml", "m: {provider: scripted}")
    write(tmp_path / "c.json", '{"m": {"provider": "scripted"}}')
    assert find_endpoint_file("m", tmp_path) == tmp_path / "b.yaml"
    assert find_endpoint_file("n", tmp_path) is None
    assert find_endpoint_file("m", tmp_path / "none") is None


def test_the_shipped_files() -> None:
    anthropic = load_endpoints(SHIPPED / "anthropic-live.json")["claude-sonnet-4-6"]
    assert (anthropic.provider, anthropic.api_key_env) == ("anthropic", "ANTHROPIC_API_KEY")
    openai = load_endpoints(SHIPPED / "openai-live.json")["gpt-5.6-luna"]
    assert (openai.provider, openai.api_key_env) == ("openai", "OPENAI_COMPAT_API_KEY")
    both = {"claude-sonnet-4-6": anthropic, "gpt-5.6-luna": openai}
    assert load_endpoints(SHIPPED / "live.json") == both
    scripted = load_endpoints(SHIPPED / "scripted.json")
    profiles = ("distractor", "refuser", "silent", "sloppy", "solver")
    assert sorted(scripted) == [f"scripted-{name}" for name in profiles]
    for endpoint in scripted.values():
        assert (endpoint.provider, endpoint.base_url, endpoint.api_key_env) == (
            "scripted",
            None,
            None,
        )
