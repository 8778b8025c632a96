"""Endpoints: deployment, never part of a condition's identity.

Source: Buzz's endpoint file, ``{endpoint: {provider, api_key_env, env?}}``; the other fields are
ours. An endpoint travels to the nodes, and but for the values of ``env`` it stands in the lock:
it names keys and holds none.
"""

from __future__ import annotations

import re
from typing import Annotated, Literal, Self
from urllib.parse import urlsplit

from pydantic import BeforeValidator, Field, RootModel, model_validator

from workers.contract.base import Strict

Provider = Annotated[
    Literal["anthropic", "openai", "openrouter", "databricks", "databricks_v2", "scripted"],
    BeforeValidator(lambda name: "openai" if name == "openai-compat" else name),
]
"""``openai-compat`` is Buzz's other name for ``openai``."""
Dialect = Literal["chat", "responses", "messages"]

VariableName = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
VariableText = Annotated[str, Field(pattern=r"^[^\x00]*$")]
"""What an environment can hold."""
HeaderName = Annotated[str, Field(pattern=r"^[A-Za-z0-9!#$%&'*+.^_`|~-]+$")]
"""A token (RFC 9110 §5.6.2)."""
HeaderText = Annotated[str, Field(pattern=r"^[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?$")]

DEFAULT_BASE_URL: dict[str, str] = {
    "anthropic": "https://api.anthropic.com",
    "openai": "https://api.openai.com/v1",
    "openrouter": "https://openrouter.ai/api/v1",
}

BASE_URL_VARIABLES: dict[str, str] = {
    "anthropic": "ANTHROPIC_BASE_URL",
    "openai": "OPENAI_COMPAT_BASE_URL",
    "openrouter": "OPENROUTER_BASE_URL",
    "databricks": "DATABRICKS_HOST",
    "databricks_v2": "DATABRICKS_HOST",
}
"""Where Buzz's own endpoint files say, in ``env``, which base URL a provider has."""

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

RESERVED_HEADERS = frozenset(
    {
        "accept-encoding",
        "authorization",
        "connection",
        "content-encoding",
        "content-length",
        "content-type",
        "cookie",
        "expect",
        "forwarded",
        "host",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
        "x-api-key",
    }
)
"""Headers that the gateway sets itself, or that belong to one connection only."""

_SECRET_WORDS = frozenset(
    {"apikey", "auth", "authorization", "credential", "credentials", "key", "passwd", "password"}
    | {"secret", "token"}
)


_KEY_FORM = re.compile(
    r"(sk|rk|pk)[-_]\S{8,}|gh[pousr]_\w+|dapi[0-9a-f]{16,}|xox[a-z]-\S+|AKIA\w{12,}"
)


def sounds_secret(name: str, value: str = "") -> bool:
    """Whether a name says that its value is a secret, or the value has the form of a known key."""
    words = re.split(r"[^a-z0-9]+", name.lower())
    return bool(_SECRET_WORDS & set(words)) or _KEY_FORM.search(value) is not None


class Endpoint(Strict):
    """Where a model is reached, and the *name* of the variable that holds its key."""

    provider: Provider
    api_key_env: VariableName | None = None
    """Null only for provider ``scripted``, which needs no key."""
    key_header: HeaderName | None = None
    """The header that carries the key; null: ``x-api-key`` for ``anthropic``, else
    ``Authorization``, which gets ``Bearer`` before it."""
    env: dict[VariableName, VariableText] = Field(default_factory=dict)
    """Further variables of the agent. They enter its container, so none may be a secret."""
    base_url: str | None = None
    """Null: the provider's own; for ``scripted``, an endpoint that the node itself serves."""
    path: Annotated[str, Field(pattern=r"^[A-Za-z0-9._~%!$&'()*+,;=:@/-]+$")] | None = None
    """What follows the base URL in place of the dialect's own path, whatever the dialect."""
    query: dict[str, str] = Field(default_factory=dict)
    """Parameters that every request's URL gets, such as Azure's ``api-version``."""
    extra_headers: dict[HeaderName, HeaderText] = Field(default_factory=dict)
    extra_headers_env: dict[HeaderName, VariableName] = Field(default_factory=dict)
    """Header to the variable that holds its value; for what is secret."""
    proxy: str | None = None
    """URL of an HTTP proxy; ``none``: no proxy; null: what the node's environment says."""
    ca_bundle: Annotated[str, Field(pattern=r"^/")] | None = None
    """A file of the node with the certificates to trust, in place of the system's."""
    stream_usage: bool = False
    """Ask for usage in chat streams: the one change that is made to a body."""
    model: str | None = None
    """The model name that the provider knows; null: the endpoint's name (as in Buzz)."""
    max_concurrency: Annotated[int, Field(ge=1)] | None = None
    """Requests under way at once at its account, from all nodes; null: as the provider lets."""
    requests_per_minute: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    """Of its account, from all nodes; null: as the provider lets."""
    tokens_per_minute: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    """As ``requests_per_minute``; input and output together."""

    @model_validator(mode="after")
    def _is_reachable(self) -> Self:
        if self.api_key_env is None and self.provider != "scripted":
            raise ValueError(f"provider {self.provider!r} needs api_key_env")
        if self.base_url is not None and not self.base_url.startswith(("http://", "https://")):
            raise ValueError("base_url must start with http:// or https://")
        variable = BASE_URL_VARIABLES.get(self.provider, "")
        if not self.env.get(variable, "http://").startswith(("http://", "https://")):
            raise ValueError(f"env: {variable} must start with http:// or https://")
        if self.upstream is None and self.provider != "scripted":
            raise ValueError(f"provider {self.provider!r} needs base_url, or {variable} in env")
        if self.env.get("OPENAI_COMPAT_API", "auto") not in ("auto", "chat", "responses"):
            raise ValueError("env: OPENAI_COMPAT_API must be auto, chat or responses")
        if self.proxy not in (None, "none"):
            _check_proxy(self.proxy or "")
        return self

    @model_validator(mode="after")
    def _holds_no_secret(self) -> Self:
        for name in sorted(RESERVED_ENV & self.env.keys()):
            raise ValueError(f"env may not set {name}: the harness does")
        for name in _secrets_in(self.env):
            raise ValueError(
                f"env may not set {name}: it would enter the agent's container, and by its name "
                "or form it is a secret"
            )
        for name in _secrets_in(self.query):
            raise ValueError(f"query may not set {name}: URLs are recorded; use extra_headers_env")
        for name in _secrets_in(self.extra_headers):
            raise ValueError(
                f"extra_headers may not set {name}: its value is recorded, and by its name or "
                "form it is a secret; name a variable in extra_headers_env"
            )
        return self

    @model_validator(mode="after")
    def _headers_are_free(self) -> Self:
        names = [name.lower() for name in (*self.extra_headers, *self.extra_headers_env)]
        carrier = (self.key_header or "").lower()
        if carrier in RESERVED_HEADERS - {"authorization", "x-api-key"}:
            raise ValueError(f"key_header may not be {self.key_header}: the gateway needs it")
        for name in names:
            if name in RESERVED_HEADERS or name == carrier:
                raise ValueError(f"extra_headers may not set {name}: the gateway does")
            if names.count(name) > 1:
                raise ValueError(f"extra_headers and extra_headers_env set {name} twice")
        return self

    @property
    def dialect(self) -> Dialect:
        """The request dialect that the reference agent speaks to this endpoint."""
        return "messages" if self.provider == "anthropic" else "chat"

    @property
    def upstream(self) -> str | None:
        """The base URL of its provider; None: the node itself answers."""
        said = self.env.get(BASE_URL_VARIABLES.get(self.provider, ""))
        return self.base_url or said or DEFAULT_BASE_URL.get(self.provider)

    @property
    def account(self) -> str | None:
        """The provider's account that its requests go to; None: the node itself answers.

        Endpoints that share it have one rate; it names the key's variable, and no key.
        """
        base = self.upstream
        if base is None:
            return None
        return " ".join((self.provider, base.rstrip("/"), self.api_key_env or "-"))

    @property
    def secret_names(self) -> tuple[str, ...]:
        """The variables that a node must have to reach it, each once."""
        names = [self.api_key_env, *self.extra_headers_env.values()]
        return tuple(dict.fromkeys(name for name in names if name is not None))


class EndpointFile(RootModel[dict[str, Endpoint]]):
    """An endpoint file: endpoint name to endpoint."""

    model_config = {"frozen": True, "strict": True}


def _secrets_in(values: dict[str, str]) -> list[str]:
    return sorted(name for name, value in values.items() if sounds_secret(name, value))


def _check_proxy(url: str) -> None:
    try:
        parts = urlsplit(url)
        sound = parts.scheme == "http" and bool(parts.hostname) and parts.port != 0
    except ValueError:
        raise ValueError("proxy must be an http:// URL with a host, or none") from None
    if parts.username or parts.password:
        raise ValueError(
            "proxy may hold no user and no password, it is recorded; a proxy that needs them is "
            "given to the nodes in HTTPS_PROXY"
        )
    if not sound or parts.path.strip("/") or parts.query or parts.fragment:
        raise ValueError("proxy must be an http:// URL with a host, or none")
