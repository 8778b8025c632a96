from __future__ import annotations

import json
from typing import Any

import pytest

from workers.contract.base import FormatError
from workers.contract.endpoint import RESERVED_ENV, Endpoint


def read(**fields: Any) -> Endpoint:
    return Endpoint.from_json(json.dumps(fields), "e")


@pytest.mark.parametrize(
    ("provider", "dialect"),
    [("anthropic", "messages"), ("openai", "chat"), ("openrouter", "chat"), ("scripted", "chat")],
)
def test_the_provider_decides_the_dialect(provider: str, dialect: str) -> None:
    assert read(provider=provider, api_key_env="K").dialect == dialect


def test_only_the_scripted_provider_needs_no_key() -> None:
    assert read(provider="scripted").api_key_env is None
    for provider in ("anthropic", "openai", "openrouter"):
        with pytest.raises(FormatError, match="needs api_key_env"):
            read(provider=provider)


@pytest.mark.parametrize("name", sorted(RESERVED_ENV))
def test_what_the_harness_sets_may_not_be_set(name: str) -> None:
    with pytest.raises(FormatError, match=f"env may not set {name}"):
        read(provider="scripted", env={name: "x"})


@pytest.mark.parametrize("name", ["", "1A", "A-B", "A B", "sk-ant-x"])
def test_a_key_variable_is_a_name(name: str) -> None:
    with pytest.raises(FormatError, match="api_key_env"):
        read(provider="openai", api_key_env=name)


def test_a_base_url_is_http_and_a_refusal_does_not_repeat_it() -> None:
    assert read(provider="scripted", base_url="http://h:1/v1").base_url == "http://h:1/v1"
    with pytest.raises(FormatError, match="base_url must start with http") as caught:
        read(provider="scripted", base_url="sk-secret@h")
    assert "sk-secret" not in str(caught.value).split(", found")[0]


@pytest.mark.parametrize("name", ["", "1A", "A-B", "A B", "A=B"])
def test_a_variable_that_no_shell_can_set_is_refused(name: str) -> None:
    # The production stack's first process exports them: it would end before its agent begins.
    with pytest.raises(FormatError, match=r"env\."):
        read(provider="scripted", env={name: "x"})


def test_a_variables_value_may_have_lines_and_no_nul() -> None:
    assert read(provider="scripted", env={"A": "one\ntwo\n"}).env == {"A": "one\ntwo\n"}
    with pytest.raises(FormatError, match=r"env\.A"):
        read(provider="scripted", env={"A": "x\0y"})
