"""How the gateway says no: a JSON error in the shape of the request's dialect. Pure."""

from __future__ import annotations

import json
from dataclasses import dataclass

from workers.contract.endpoint import Dialect
from workers.gateway.ledger import CallResult


@dataclass(frozen=True)
class Refusal:
    """A request that is answered by the gateway itself."""

    status: int
    result: CallResult
    kind: str
    """The ``type`` of the error object."""
    message: str
    """For the agent's log; never holds a token or a key."""


def refusal_body(dialect: Dialect | None, refusal: Refusal) -> bytes:
    """The error's JSON (OpenAI: ``error``; Anthropic: ``type`` beside ``error``)."""
    error = {"type": refusal.kind, "message": refusal.message}
    if dialect == "messages":
        return json.dumps({"type": "error", "error": error}).encode()
    return json.dumps({"error": {**error, "code": refusal.result.value, "param": None}}).encode()


def budget_refusal(owner: str, limit: str) -> Refusal:
    """The budget is spent; ``owner`` is an agent's id or ``the trial``."""
    message = f"the budget of {owner} is spent: {limit} of its condition is reached"
    return Refusal(402, CallResult.REFUSED_BUDGET, "budget_exhausted", message)


def sweep_budget_refusal(why: str) -> Refusal:
    """The operator's budget for the whole sweep has no more for this node."""
    return Refusal(402, CallResult.REFUSED_SWEEP_BUDGET, "budget_exhausted", why)


def token_refusal() -> Refusal:
    """No token, or none of this trial."""
    return Refusal(
        401,
        CallResult.REFUSED_TOKEN,
        "authentication_error",
        "the request carries no token of this trial (Authorization: Bearer, or x-api-key)",
    )


def route_refusal(status: int, message: str) -> Refusal:
    """A path, body or model that may not be used."""
    return Refusal(status, CallResult.REFUSED_ROUTE, "invalid_request_error", message)


def unreachable_refusal(detail: str) -> Refusal:
    """The provider did not answer."""
    return Refusal(502, CallResult.PROVIDER_UNREACHABLE, "api_error", detail)
