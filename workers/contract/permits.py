"""Permits to ask a provider's account, lent by the driver, and what nodes see of accounts.

An account is what endpoints share that have provider, base URL and key variable in common; its
name is ``Endpoint.account``. Counts grow from the node's start, so that an answer that is lost
takes nothing with it. Times are ages or what is left, in seconds: clocks are not compared.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from workers.contract.base import Strict

Count = Annotated[int, Field(ge=0)]
Seconds = Annotated[float, Field(ge=0)]
Rate = Annotated[float, Field(ge=0)]


class Loan(Strict):
    """What a node may do at an account from now on, also without a driver."""

    permits: Count
    """Requests under way at once."""
    requests_per_s: Rate | None = None
    """Null: no limit but the permits."""
    tokens_per_s: Rate | None = None
    """Input and output together; null: no limit."""
    hold_s: Seconds = 0.0
    """Nothing is sent for so long: the provider asked for it, through whatever node."""
    round: Count = 0
    """Grows whenever the driver takes permits back after refusals: those of requests that were
    sent in an earlier round are its consequence already."""


class AccountNews(Strict):
    """What a node has seen of an account."""

    permits: Count
    """In force."""
    requests_per_s: Rate | None = None
    """In force."""
    tokens_per_s: Rate | None = None
    """In force."""
    in_use: Count = 0
    waiting: Count = 0
    """Requests that wait for a permit."""
    started: Count = 0
    ok: Count = 0
    """Answered with success."""
    refused: Count = 0
    """Answered with 429."""
    failed: Count = 0
    """Answered with 5xx, or not at all."""
    round: Count = 0
    """That of the loan in force."""
    refused_in_round: Count = 0
    """Of requests that were sent in it."""
    in_use_when_refused: Count = 0
    """Under way here when the first of these was refused, itself included."""
    hold_s: Seconds = 0.0
    """How long the node still sends nothing, for refusals of its own requests."""
    asked_to_wait: bool = False
    """Whether refusals say how long to wait."""
    limit_requests_per_s: Rate | None = None
    """The allowance by the provider's headers; null: they do not tell."""
    limit_tokens_per_s: Rate | None = None
    latency_s: Seconds = 0.0
    """From sending to the answer's head, averaged over the last requests."""


class EndpointNews(Strict):
    """How requests to one endpoint fare, as a node sees them."""

    ok: Count = 0
    """Successes that were sent after the failures before them began."""
    failures: Count = 0
    """Since then, with 5xx or without an answer; refusals and wrong requests say nothing."""
    agents: Count = 0
    """How many agents these befell."""
    failing_s: Seconds = 0.0
    """How long ago the first of them was sent."""
    ok_sent_s: Seconds | None = None
    """How long ago the last request was sent that succeeded; null: none did."""
    idle_s: Seconds | None = None
    """How long ago a success or a failure was seen last; null: never."""
