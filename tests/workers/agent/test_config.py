from __future__ import annotations

import pytest

from workers.agent.config import Config, ConfigError

VARIABLES = {
    "APIARY_AGENT_ID": "solo-1",
    "BUZZ_RELAY_URL": "ws://localhost:3600",
    "BUZZ_PRIVATE_KEY": "k" * 64,
    "BUZZ_AUTH_TAG": '["auth"]',
    "BUZZ_ACP_CHANNELS": "A-1, b-2,",
    "BUZZ_ACP_NO_MEMORY": "true",
    "BUZZ_AGENT_PROVIDER": "openai",
    "BUZZ_AGENT_MODEL": "luna",
    "APIARY_GATEWAY_URL": "http://localhost:3601/",
    "APIARY_GATEWAY_TOKEN": "token-secret",
}


def test_what_is_read_and_what_is_assumed() -> None:
    config = Config.from_variables(VARIABLES)
    assert config.channels == ("a-1", "b-2")
    assert config.bridge_url == "http://localhost:3600"
    assert config.gateway_url == "http://localhost:3601"
    assert (config.max_output_tokens, config.handoff_tokens) == (65536, 180_000)
    assert config.base_prompt
    assert (config.max_rounds, config.dialect, config.inject_memory) == (0, "chat", False)


@pytest.mark.parametrize(
    ("change", "tokens"),
    [
        ({"BUZZ_AGENT_MAX_CONTEXT_TOKENS": "1000"}, 900),
        ({"BUZZ_AGENT_MAX_CONTEXT_TOKENS": "1000", "BUZZ_AGENT_HANDOFF_PERCENT": "50"}, 500),
        ({"BUZZ_AGENT_HANDOFF_PERCENT": "50", "BUZZ_AGENT_HANDOFF_AT_TOKENS": "70"}, 70),
    ],
)
def test_when_a_history_is_handed_over(change: dict[str, str], tokens: int) -> None:
    assert Config.from_variables({**VARIABLES, **change}).handoff_tokens == tokens


def test_a_persona_may_stand_alone() -> None:
    config = Config.from_variables({**VARIABLES, "BUZZ_ACP_NO_BASE_PROMPT": "true"})
    assert not config.base_prompt


def test_a_printed_config_shows_no_secret() -> None:
    text = repr(Config.from_variables(VARIABLES))
    assert "k" * 64 not in text
    assert "token-secret" not in text
    assert '["auth"]' not in text


def test_commands_get_the_agent_s_own_access_and_no_token() -> None:
    variables = Config.from_variables(VARIABLES).buzz_variables()
    assert set(variables) == {"BUZZ_RELAY_URL", "BUZZ_PRIVATE_KEY", "BUZZ_AUTH_TAG"}


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"BUZZ_PRIVATE_KEY": ""}, "BUZZ_PRIVATE_KEY"),
        ({"BUZZ_AGENT_MAX_ROUNDS": "many"}, "BUZZ_AGENT_MAX_ROUNDS"),
        ({"BUZZ_AGENT_MAX_ROUNDS": ""}, "BUZZ_AGENT_MAX_ROUNDS"),
        ({"BUZZ_AGENT_MAX_OUTPUT_TOKENS": "-1"}, "BUZZ_AGENT_MAX_OUTPUT_TOKENS"),
        ({"APIARY_DIALECT": "responses"}, "APIARY_DIALECT"),
        ({"BUZZ_ACP_RESPOND_TO": "owner-only"}, "BUZZ_ACP_RESPOND_TO"),
        ({"BUZZ_ACP_SUBSCRIBE": "all"}, "BUZZ_ACP_SUBSCRIBE"),
    ],
)
def test_what_cannot_be_read_is_named(change: dict[str, str], name: str) -> None:
    with pytest.raises(ConfigError, match=name):
        Config.from_variables({**VARIABLES, **change})
