"""What one document of a provider says: usage, why the model stopped, whether it failed.

Pure; one function a dialect (spec: buzz-wire 5.4). A document is untrusted: whatever has an
unexpected type counts as not said.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from workers.contract.endpoint import Dialect
from workers.gateway.ledger import CallResult

MOST_TOKENS = 2**40
"""Counts above this are no counts."""


@dataclass(frozen=True)
class Tokens:
    """Token counts of a call; None: not reported."""

    input: int | None = None
    """Everything that was given, what came from and went to a cache included."""
    cached: int | None = None
    """Of the input: read from a cache."""
    output: int | None = None
    """Everything that was made, reasoning included."""
    cache_write: int | None = None
    """Of the input: written to a cache."""
    reasoning: int | None = None
    """Of the output: thought and not said."""


@dataclass(frozen=True)
class Reading:
    """What the documents of one answer have said so far."""

    tokens: Tokens = Tokens()
    finish: str | None = None
    ended: bool = False
    """The answer came to its end."""
    fault: CallResult | None = None
    """The provider failed, although the status said success."""


MALFORMED = Reading(fault=CallResult.PROVIDER_MALFORMED)


def read_body(dialect: Dialect, document: object) -> Reading:
    """Reads the whole body of an answer that was not streamed."""
    if not isinstance(document, Mapping):
        return MALFORMED
    read, form = _BODIES[dialect]
    if (error := _error(document)) is not None:
        # What it cost all the same is known if the provider says so.
        return Reading(tokens=read(document, Reading()).tokens, fault=fault_of(error))
    if not isinstance(document.get(form), list):
        return MALFORMED
    return replace(read(document, Reading()), ended=True)


def read_event(dialect: Dialect, document: object, before: Reading) -> Reading:
    """Reads one event of a stream on top of those before."""
    if not isinstance(document, Mapping):
        return replace(before, fault=CallResult.PROVIDER_MALFORMED)
    if (error := _error(document)) is not None:
        read, _ = _BODIES[dialect]
        tokens = read(document, before).tokens if "usage" in document else before.tokens
        return replace(before, tokens=tokens, fault=fault_of(error))
    match dialect:
        case "chat":
            reading = _chat(document, before)
            return replace(reading, ended=reading.ended or reading.finish is not None)
        case "messages":
            return _messages_event(document, before)
        case "responses":
            return _responses_event(document, before)


def _error(document: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The error that stands in an answer's place; of one that is a sentence, the sentence."""
    error = document.get("error")
    if isinstance(error, str) and error:
        return {"message": error}
    return error if isinstance(error, Mapping) else None


def fault_of(error: Mapping[str, Any]) -> CallResult:
    """What an error object inside a successful answer means (OpenAI, OpenRouter, Anthropic)."""
    words = {str(error.get("type")), str(error.get("code"))}
    if words & {"429", "rate_limit_error", "rate_limit_exceeded", "insufficient_quota"}:
        return CallResult.RATE_LIMITED
    if words & {"401", "402", "403", "authentication_error", "permission_error", "billing_error"}:
        return CallResult.PROVIDER_AUTH
    if words & {"400", "invalid_request_error", "invalid_prompt"}:
        return CallResult.CLIENT_ERROR
    return CallResult.PROVIDER_5XX


def _chat(document: Mapping[str, Any], before: Reading) -> Reading:
    reading = before
    choices = document.get("choices")
    if isinstance(choices, list) and choices and isinstance(choices[0], Mapping):
        finish = _text(choices[0].get("finish_reason"))
        if finish == "error":
            return replace(before, finish=finish, fault=CallResult.PROVIDER_5XX)
        reading = replace(reading, finish=finish or reading.finish)
    usage = document.get("usage")
    if isinstance(usage, Mapping):
        given = _inside(usage, "prompt_tokens_details")
        cached = _count(given.get("cached_tokens"))
        tokens = Tokens(
            input=_count(usage.get("prompt_tokens")),
            cached=cached if cached is not None else _count(usage.get("cache_read_input_tokens")),
            output=_count(usage.get("completion_tokens")),
            cache_write=_count(given.get("cache_write_tokens")),
            reasoning=_reasoning(usage, "completion_tokens_details"),
        )
        reading = replace(reading, tokens=_merged(_with_thought(tokens, usage), before.tokens))
    return reading


def _merged(now: Tokens, before: Tokens) -> Tokens:
    """What is said now, and of what is not what was said before."""
    said = {name: count for name, count in asdict(now).items() if count is not None}
    return replace(before, **said)


def _message(document: Mapping[str, Any], before: Reading) -> Reading:
    """An Anthropic message, or the ``message`` of a stream's start."""
    usage = _inside(document, "usage")
    return replace(
        before,
        tokens=_anthropic_tokens(usage, before.tokens),
        finish=_text(document.get("stop_reason")) or before.finish,
    )


def _messages_event(document: Mapping[str, Any], before: Reading) -> Reading:
    match document.get("type"):
        case "message_start":
            # Its output count is that of the first token only.
            reading = _message(_inside(document, "message"), before)
            return replace(reading, tokens=replace(reading.tokens, output=None))
        case "message_delta":
            usage, delta = _inside(document, "usage"), _inside(document, "delta")
            return replace(
                before,
                tokens=_anthropic_tokens(usage, before.tokens),
                finish=_text(delta.get("stop_reason")) or before.finish,
            )
        case "message_stop":
            return replace(before, ended=True)
        case _:
            return before


def _anthropic_tokens(usage: Mapping[str, Any], before: Tokens) -> Tokens:
    """Anthropic counts what it read from and wrote to its cache beside the input."""
    fresh = _count(usage.get("input_tokens"))
    read = _count(usage.get("cache_read_input_tokens"))
    written = _count(usage.get("cache_creation_input_tokens"))
    output = _count(usage.get("output_tokens"))
    thought = _count(_inside(usage, "output_tokens_details").get("thinking_tokens"))
    # A stream's later events repeat some counts and leave out others.
    read = before.cached if read is None else read
    written = before.cache_write if written is None else written
    return Tokens(
        input=fresh + (read or 0) + (written or 0) if fresh is not None else before.input,
        cached=read,
        output=output if output is not None else before.output,
        cache_write=written,
        reasoning=before.reasoning if thought is None else thought,
    )


def _response(document: Mapping[str, Any], before: Reading) -> Reading:
    usage = document.get("usage")
    tokens = before.tokens
    if isinstance(usage, Mapping):
        tokens = Tokens(
            input=_count(usage.get("input_tokens")),
            cached=_count(_inside(usage, "input_tokens_details").get("cached_tokens")),
            output=_count(usage.get("output_tokens")),
            cache_write=_count(_inside(usage, "input_tokens_details").get("cache_write_tokens")),
            reasoning=_reasoning(usage, "output_tokens_details"),
        )
        tokens = _with_thought(tokens, usage)
    reason = _text(_inside(document, "incomplete_details").get("reason"))
    return replace(before, tokens=tokens, finish=reason or _text(document.get("status")))


def _responses_event(document: Mapping[str, Any], before: Reading) -> Reading:
    response = _inside(document, "response")
    match document.get("type"):
        case "response.completed" | "response.incomplete":
            return replace(_response(response, before), ended=True)
        case "response.failed":
            reading = _response(response, before)
            return replace(reading, fault=fault_of(_inside(response, "error")))
        case "error":
            return replace(before, fault=fault_of(document))
        case _:
            return before


_BODIES: dict[Dialect, tuple[Callable[[Mapping[str, Any], Reading], Reading], str]] = {
    "chat": (_chat, "choices"),
    "messages": (_message, "content"),
    "responses": (_response, "output"),
}
"""How a body is read, and the list that it must have to be one."""


def _reasoning(usage: Mapping[str, Any], name: str) -> int | None:
    return _count(_inside(usage, name).get("reasoning_tokens"))


def _with_thought(tokens: Tokens, usage: Mapping[str, Any]) -> Tokens:
    """With reasoning as a part of the output, where a provider counts it beside.

    xAI names it and Gemini does not, but for the total, which has it.
    """
    given, made, thought = tokens.input, tokens.output, tokens.reasoning
    if given is None or made is None:
        return tokens
    beside = max(0, (_count(usage.get("total_tokens")) or 0) - given - made)
    if thought is not None and beside != thought:
        beside = thought if thought > made else 0
    return replace(tokens, output=made + beside)


def _inside(document: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = document.get(name)
    return value if isinstance(value, Mapping) else {}


def _count(value: object) -> int | None:
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST_TOKENS:
        return value
    return None


def _text(value: object) -> str | None:
    """A text; a lone surrogate, which JSON may hold and UTF-8 may not, is replaced."""
    if not isinstance(value, str) or not value:
        return None
    return value.encode("utf-8", "replace").decode()
