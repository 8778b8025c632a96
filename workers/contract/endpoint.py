"""Endpoints: deployment, never part of a condition's identity.

Source: Buzz's endpoint file, ``{endpoint: {provider, api_key_env, env?}}``; ``base_url``
and ``model`` are ours.
"""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, RootModel, model_validator

from workers.contract.base import Strict

Provider = Literal["anthropic", "openai", "openrouter", "scripted"]
Dialect = Literal["chat", "responses", "messages"]

DEFAULT_BASE_URL: dict[str, str] = {
    "anthropic": "https://api.anthropic.com",
    "openai": "https://api.openai.com/v1",
    "openrouter": "https://openrouter.ai/api/v1",
}

RESERVED_ENV = frozenset(
    {
        "BUZZ_RELAY_URL",
        "BUZZ_PRIVATE_KEY",
        "BUZZ_AUTH_TAG",
        "BUZZ_ACP_CHANNELS",
        "BUZZ_ACP_MCP_COMMAND",
        "BUZZ_ACP_AGENT_COMMAND",
    }
)


class Endpoint(Strict):
    """Where a model is reached, and the *name* of the variable that holds its key."""

    provider: Provider
    api_key_env: Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")] | None = None
    """Null only for provider ``scripted``, which needs no key."""
    env: dict[str, str] = Field(default_factory=dict)
    base_url: str | None = None
    """Null: the provider's own; for ``scripted``, an endpoint that the node itself serves."""
    model: str | None = None
    """The model name that the provider knows; null: the endpoint's name (as in Buzz)."""

    @model_validator(mode="after")
    def _is_reachable(self) -> Self:
        if self.api_key_env is None and self.provider != "scripted":
            raise ValueError(f"provider {self.provider!r} needs api_key_env")
        if self.base_url is not None and not self.base_url.startswith(("http://", "https://")):
            raise ValueError("base_url must start with http:// or https://")
        for name in sorted(RESERVED_ENV & self.env.keys()):
            raise ValueError(f"env may not set {name}: the harness does")
        return self

    @property
    def dialect(self) -> Dialect:
        """The request dialect that the reference agent speaks to this endpoint."""
        return "messages" if self.provider == "anthropic" else "chat"


class EndpointFile(RootModel[dict[str, Endpoint]]):
    """An endpoint file: endpoint name to endpoint."""

    model_config = {"frozen": True, "strict": True}
