"""One turn: prompt, model, tools, model, … until the model stops (buzz-agent's loop)."""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from workers.agent.llm import (
    Answer,
    Assistant,
    Entry,
    Stop,
    Tool,
    ToolCall,
    ToolResult,
    ToolResults,
    User,
)
from workers.agent.model import ContextOverflow, ModelError
from workers.agent.session import Session

TOKEN_RECOVERIES = 3
HANDOFFS = 10
OVERFLOWS = 3
TRUNCATED_NOTE = (
    "Your last answer was cut off at the output limit, and no command in it was run. "
    "Go on in smaller steps: shorter text, one command at a time."
)


class StopReason(str, enum.Enum):
    """How a turn ended; the values are those of the agent client protocol."""

    END_TURN = "end_turn"
    MAX_TOKENS = "max_tokens"
    MAX_TURN_REQUESTS = "max_turn_requests"
    REFUSAL = "refusal"


class Asks(Protocol):
    """What answers a conversation: ``Model``."""

    def ask(self, system: str, history: Sequence[Entry], tools: Sequence[Tool]) -> Answer:
        """One answer."""
        ...


class Runs(Protocol):
    """What runs tool calls: ``Toolbox``."""

    tools: Sequence[Tool]

    def run(self, calls: Sequence[ToolCall]) -> tuple[ToolResult, ...]:
        """Runs calls, results in their order."""
        ...


@dataclass
class Turn:
    """The loop over one session.

    Attributes:
        model: answers.
        toolbox: runs what the answers ask for.
        session: the history that is read and extended.
        additions: gives texts that came in meanwhile, each once; asked before every model call.
        max_rounds: model calls in a turn; 0: no limit.
    """

    model: Asks
    toolbox: Runs
    session: Session
    additions: Callable[[], Sequence[str]]
    max_rounds: int

    def run(self, prompt: str) -> StopReason:
        """Works on a prompt until the model has nothing more to do.

        Raises:
            ModelError: an answer could not be had.
        """
        self.session.add(User(prompt))
        rounds = truncations = handoffs = 0
        while True:
            for text in self.additions():
                self.session.add(User(text))
            if self.session.is_full and handoffs < HANDOFFS:
                handoffs += 1
                self._hand_over()
            if self.max_rounds and rounds >= self.max_rounds:
                return StopReason.MAX_TURN_REQUESTS
            rounds += 1
            answer = self._ask()
            truncations += answer.stop is Stop.TRUNCATED
            reason = self._take(answer, truncations)
            if reason is not None:
                return reason

    def _take(self, answer: Answer, truncations: int) -> StopReason | None:
        """Takes an answer in and runs its calls; a reason: the turn is over."""
        message = answer.message
        if answer.stop is Stop.TRUNCATED:
            # Its calls may be cut anywhere: none of them is run or kept.
            self.session.add(Assistant(message.text or "(cut off)"))
            if truncations > TOKEN_RECOVERIES:
                return StopReason.MAX_TOKENS
            self.session.add(User(TRUNCATED_NOTE))
            return None
        self.session.measured(answer.usage.input_tokens)
        if answer.stop is Stop.REFUSAL:
            self.session.add(Assistant(message.text or "(refused)"))
            return StopReason.REFUSAL
        self.session.add(message)
        if not message.calls:
            if answer.stop is Stop.TOOLS:
                raise ModelError("llm: the model stopped for tools and named none")
            return StopReason.END_TURN
        self.session.add(ToolResults(self.toolbox.run(message.calls)))
        return None

    def _ask(self) -> Answer:
        """One answer; a history that the endpoint finds too long is handed over first."""
        overflows = 0
        while True:
            history = self.session.history
            try:
                return self.model.ask(self.session.system, history, self.toolbox.tools)
            except ContextOverflow:
                overflows += 1
                if overflows > OVERFLOWS:
                    raise
                self._hand_over()

    def _hand_over(self) -> None:
        # Anthropic refuses a history with tool calls in it where no tools are declared.
        request = self.session.summary_request()
        answer = self.model.ask(self.session.system, request, self.toolbox.tools)
        self.session.hand_over(answer.message.text)
