"""The settings of one agent, read once; nothing else of the agent looks at its variables.

Names and defaults are those of buzz-acp and buzz-agent where those have the setting.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from workers.agent.addresses import http_base

DEFAULT_OUTPUT_TOKENS = 65536
DEFAULT_CONTEXT_TOKENS = 200_000
DEFAULT_HANDOFF_PERCENT = 90
DIALECTS = ("chat", "messages")


class ConfigError(Exception):
    """A variable is missing or cannot be read; the message names it, never its value."""


@dataclass(frozen=True)
class Config:
    """What one agent process needs to know."""

    agent_id: str
    relay_url: str
    """``ws://…``: dialled as it is and signed into the AUTH event."""
    private_key: str = field(repr=False)
    """64 hex digits or nsec."""
    auth_tag: str = field(repr=False)
    """The owner's attestation as JSON text; empty: none."""
    channels: tuple[str, ...]
    """The only channels that are listened to; empty: all that the agent is a member of."""
    system_prompt_file: str
    """Empty: there is no persona."""
    base_prompt: bool
    """Whether our own prompt stands before the persona."""
    inject_memory: bool
    """Whether the memory ``core`` is put into the system prompt."""
    provider: str
    model: str
    effort: str
    """Thinking effort; empty: the model's default."""
    max_output_tokens: int
    handoff_tokens: int
    """Tokens of a history at which a summary takes its place."""
    max_rounds: int
    """Model calls in one turn; 0: no limit."""
    gateway_url: str
    gateway_token: str = field(repr=False)
    dialect: str
    """``chat`` or ``messages``."""
    shell: str
    """The shell of the shell tool; empty: bash where there is one, else sh."""

    @property
    def bridge_url(self) -> str:
        """The relay's HTTP address."""
        return http_base(self.relay_url)

    @classmethod
    def from_variables(cls, variables: Mapping[str, str]) -> Config:
        """Reads one agent's variables.

        Raises:
            ConfigError: a needed one is missing, or one does not have its form.
        """
        dialect = variables.get("APIARY_DIALECT", "chat")
        if dialect not in DIALECTS:
            raise ConfigError(f"APIARY_DIALECT must be one of {', '.join(DIALECTS)}")
        respond_to = variables.get("BUZZ_ACP_RESPOND_TO", "anyone")
        if respond_to != "anyone":
            raise ConfigError("BUZZ_ACP_RESPOND_TO: this agent knows only 'anyone'")
        subscribe = variables.get("BUZZ_ACP_SUBSCRIBE", "mentions")
        if subscribe != "mentions":
            raise ConfigError("BUZZ_ACP_SUBSCRIBE: this agent knows only 'mentions'")
        return cls(
            agent_id=_needed(variables, "APIARY_AGENT_ID"),
            relay_url=_needed(variables, "BUZZ_RELAY_URL"),
            private_key=_needed(variables, "BUZZ_PRIVATE_KEY"),
            auth_tag=variables.get("BUZZ_AUTH_TAG", ""),
            channels=_list(variables.get("BUZZ_ACP_CHANNELS", "")),
            system_prompt_file=variables.get("BUZZ_ACP_SYSTEM_PROMPT_FILE", ""),
            base_prompt=not _is_true(variables, "BUZZ_ACP_NO_BASE_PROMPT"),
            inject_memory=not _is_true(variables, "BUZZ_ACP_NO_MEMORY"),
            provider=_needed(variables, "BUZZ_AGENT_PROVIDER"),
            model=_needed(variables, "BUZZ_AGENT_MODEL"),
            effort=variables.get("BUZZ_AGENT_THINKING_EFFORT", ""),
            max_output_tokens=_count(
                variables, "BUZZ_AGENT_MAX_OUTPUT_TOKENS", DEFAULT_OUTPUT_TOKENS
            ),
            handoff_tokens=_handoff_tokens(variables),
            max_rounds=_count(variables, "BUZZ_AGENT_MAX_ROUNDS", 0),
            gateway_url=_needed(variables, "APIARY_GATEWAY_URL").rstrip("/"),
            gateway_token=_needed(variables, "APIARY_GATEWAY_TOKEN"),
            dialect=dialect,
            shell=variables.get("BUZZ_SHELL", ""),
        )

    def buzz_variables(self) -> dict[str, str]:
        """What the ``buzz`` command reads, as production passes it to its shell."""
        variables = {
            "BUZZ_RELAY_URL": self.relay_url,
            "BUZZ_PRIVATE_KEY": self.private_key,
        }
        if self.auth_tag:
            variables["BUZZ_AUTH_TAG"] = self.auth_tag
        return variables


def _needed(variables: Mapping[str, str], name: str) -> str:
    value = variables.get(name, "")
    if not value:
        raise ConfigError(f"{name} is not set")
    return value


def _list(text: str) -> tuple[str, ...]:
    return tuple(part.strip().lower() for part in text.split(",") if part.strip())


def _is_true(variables: Mapping[str, str], name: str) -> bool:
    return variables.get(name, "").lower() in ("true", "1")


def _handoff_tokens(variables: Mapping[str, str]) -> int:
    """A stated number, else a share of the window."""
    window = _count(variables, "BUZZ_AGENT_MAX_CONTEXT_TOKENS", DEFAULT_CONTEXT_TOKENS)
    percent = _count(variables, "BUZZ_AGENT_HANDOFF_PERCENT", DEFAULT_HANDOFF_PERCENT)
    return _count(variables, "BUZZ_AGENT_HANDOFF_AT_TOKENS", window * percent // 100)


def _count(variables: Mapping[str, str], name: str, default: int) -> int:
    text = variables.get(name)
    if text is None:
        return default
    if not text.isascii() or not text.isdigit():
        raise ConfigError(f"{name} must be a whole number")
    return int(text)
