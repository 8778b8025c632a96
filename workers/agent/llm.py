"""A conversation with a model, apart from any provider's wording of it.

``dialect_chat`` and ``dialect_messages`` turn these values into requests and answers into
these values; ``model`` sends and retries.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, Union


class Stop(enum.Enum):
    """Why a model stopped."""

    END = "end"
    TOOLS = "tools"
    TRUNCATED = "truncated"
    REFUSAL = "refusal"
    OTHER = "other"


class AnswerError(Exception):
    """An answer of the model's endpoint does not have the form of its dialect."""


@dataclass(frozen=True)
class Tool:
    """What the model may call."""

    name: str
    description: str
    schema: Mapping[str, Any]
    """JSON Schema of its arguments."""


@dataclass(frozen=True)
class ToolCall:
    """A call that the model asks for."""

    id: str
    name: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True)
class User:
    """Something told to the model."""

    text: str


@dataclass(frozen=True)
class Assistant:
    """Something that the model said."""

    text: str
    calls: tuple[ToolCall, ...] = ()
    replay: Any = None
    """The answer's message as it must be sent back, in its dialect's own form."""


@dataclass(frozen=True)
class ToolResult:
    """What one call gave."""

    id: str
    text: str
    is_error: bool = False


@dataclass(frozen=True)
class ToolResults:
    """What the calls of one answer gave, in the order of the calls."""

    results: tuple[ToolResult, ...]


Entry = Union[User, Assistant, ToolResults]


@dataclass(frozen=True)
class Usage:
    """Tokens of one call; None: not reported."""

    input_tokens: int | None = None
    """Cached ones included."""
    cached_tokens: int | None = None
    output_tokens: int | None = None


@dataclass(frozen=True)
class Answer:
    """One answer of the model."""

    message: Assistant
    stop: Stop
    usage: Usage = field(default_factory=Usage)


@dataclass(frozen=True)
class ModelSettings:
    """What every request carries."""

    model: str
    provider: str
    effort: str
    """Thinking effort; empty: not sent."""
    max_output_tokens: int


class Dialect(Protocol):
    """One provider's wording."""

    path: str
    """Of the request, below the gateway's address."""

    def headers(self, token: str) -> dict[str, str]:
        """The headers that carry the token."""
        ...

    def body(
        self,
        settings: ModelSettings,
        system: str,
        history: Sequence[Entry],
        tools: Sequence[Tool],
    ) -> dict[str, Any]:
        """The request's JSON."""
        ...

    def answer(self, data: Any) -> Answer:
        """Reads an answer's JSON.

        Raises:
            AnswerError: it has not the form of an answer.
        """
        ...
