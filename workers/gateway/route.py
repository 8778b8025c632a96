"""From an agent's request to a provider's URL. Pure.

The model that a body names must be the one of the agent's endpoint: ``Endpoint.model`` where
that is set, else the endpoint's name. A body is forwarded byte for byte, so another name
cannot be put in its place: it is refused.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeGuard
from urllib.parse import quote, unquote_plus, urlencode

from workers.contract.endpoint import Dialect, Endpoint
from workers.gateway.ledger import CallResult
from workers.gateway.reading import MOST_TOKENS
from workers.gateway.refusal import Refusal, route_refusal

DIALECTS: dict[str, Dialect] = {
    "chat/completions": "chat",
    "responses": "responses",
    "messages": "messages",
}
SUFFIXES: dict[Dialect, str] = {dialect: path for path, dialect in DIALECTS.items()}
DATABRICKS_V2: dict[Dialect, str] = {
    "chat": "ai-gateway/mlflow/v1/chat/completions",
    "responses": "ai-gateway/openai/v1/responses",
    "messages": "ai-gateway/anthropic/v1/messages",
}
"""What Databricks has in place of ``SUFFIXES`` (spec: 5.3)."""
_BY_PATH = {**DIALECTS, **{path: dialect for dialect, path in DATABRICKS_V2.items()}}
_SERVING = re.compile(r"/serving-endpoints/([^/]+)/invocations")
"""Databricks' first form: the path names the model, and the chat's body does not."""

_LIMIT_FIELDS: dict[Dialect, tuple[str, ...]] = {
    "chat": ("max_completion_tokens", "max_tokens"),
    "responses": ("max_output_tokens",),
    "messages": ("max_tokens",),
}


_MODEL_FIELDS = frozenset({"model", "models"})
"""``models``: OpenRouter's others to fall back to. Some servers read names in any case."""


class DuplicateFieldError(ValueError):
    """An object names a field twice: two readers of it could differ."""


@dataclass(frozen=True)
class Asked:
    """What the gateway needs to know of a request's body."""

    dialect: Dialect
    model: str
    streamed: bool
    max_output_tokens: int | None


def dialect_of(path: str) -> Dialect | None:
    """The dialect of a path, with or without ``/v1`` before it; None: no path of ours."""
    if _SERVING.fullmatch(path):
        return "chat"
    return _BY_PATH.get(path.removeprefix("/").removeprefix("v1/"))


def model_of(name: str, endpoint: Endpoint) -> str:
    """The model name that requests to an endpoint must carry."""
    return endpoint.model or name


def read_request(dialect: Dialect, body: bytes, model: str, path: str = "") -> Asked | Refusal:
    """Checks a request's path and body against the model that the agent may use."""
    try:
        document = json.loads(body, object_pairs_hook=_no_duplicates)
    except DuplicateFieldError as error:
        return route_refusal(400, str(error))
    except (ValueError, RecursionError):
        return route_refusal(400, "the body is not JSON")
    if not isinstance(document, dict):
        return route_refusal(400, "the body is not a JSON object")
    named = _SERVING.fullmatch(path)
    asked_for = [document.get("model")] if "model" in document or not named else []
    asked_for += [named[1]] if named else []
    if any(each != model for each in asked_for):
        asked = str(asked_for[-1])[:100]
        return route_refusal(
            403, f"the model {asked!r} is not the one of this agent's endpoint, {model!r}"
        )
    for name in document:
        if name.casefold() in _MODEL_FIELDS and name != "model":
            return route_refusal(403, f"the field {name!r} could let another model answer")
    return Asked(dialect, model, document.get("stream") is True, _output_limit(dialect, document))


def upstream_url(endpoint: Endpoint, dialect: Dialect, query: str, model: str = "") -> str:
    """Where the request goes. Anthropic's base has no ``/v1``, OpenAI's has (spec: 5.3).

    The endpoint's own parameters come last, in the place of the agent's of the same name: what is
    said twice, servers refuse or read as they like.

    Raises:
        ValueError: the endpoint has no address.
    """
    if endpoint.upstream is None:
        raise ValueError(f"an endpoint of provider {endpoint.provider} without an address")
    base = endpoint.upstream.rstrip("/")
    path = endpoint.path or _path_of(endpoint, dialect, model)
    own = urlencode(endpoint.query, quote_via=quote)
    asked = "&".join(each for each in query.split("&") if _name_of(each) not in endpoint.query)
    joined = "&".join(part for part in (asked, own) if part)
    return f"{base}/{path.lstrip('/')}" + (f"?{joined}" if joined else "")


def _name_of(parameter: str) -> str:
    return unquote_plus(parameter.partition("=")[0])


def _path_of(endpoint: Endpoint, dialect: Dialect, model: str) -> str:
    match endpoint.provider:
        case "databricks":
            return f"serving-endpoints/{quote(model, safe='')}/invocations"
        case "databricks_v2":
            return DATABRICKS_V2[dialect]
        case "anthropic":
            return f"v1/{SUFFIXES[dialect]}"
        case _:
            return SUFFIXES[dialect]


def result_of_status(status: int) -> CallResult:
    """What a provider's status means; whether a success is one, its body says."""
    if 200 <= status < 300:
        return CallResult.OK
    if status == 429:
        return CallResult.RATE_LIMITED
    if status in (401, 402, 403):  # 402: the account has no credit left.
        return CallResult.PROVIDER_AUTH
    if status in (408, 499) or status >= 500:
        return CallResult.PROVIDER_5XX
    if 400 <= status < 500:
        return CallResult.CLIENT_ERROR
    return CallResult.PROVIDER_MALFORMED


def _output_limit(dialect: Dialect, document: Mapping[str, Any]) -> int | None:
    # Each of several answers to a chat may have so many.
    choices = document.get("n") if dialect == "chat" else None
    choices = choices if _is_count(choices) else 1
    for name in _LIMIT_FIELDS[dialect]:
        value = document.get(name)
        if _is_count(value):
            return min(value * choices, MOST_TOKENS)
    return None


def _is_count(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    document = dict(pairs)
    if len(document) != len(pairs):
        raise DuplicateFieldError("an object of the body names a field twice")
    return document
