"""The model's memory of one channel, and its hand-over to a summary before it overflows.

Rule of buzz-agent: hand over when the last request's input tokens, plus one token per byte that
was appended since, reach a share of the window; before any usage is known, when the history has
as many bytes. A summary and the latest prompt then stand for everything before.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from workers.agent.llm import Assistant, Entry, ToolResults, User

SUMMARY_REQUEST = (
    "The conversation is about to outgrow your memory. Write down everything that you need in "
    "order to go on without it: what was asked, by whom (with keys and event ids), what is done, "
    "what was found, what was sent, and what is still to do. Write only that."
)


class Session:
    """The history of one channel.

    Args:
        system: the system prompt.
        handoff_tokens: the size at which it hands over.
    """

    def __init__(self, system: str, handoff_tokens: int) -> None:
        self.system = system
        self.history: list[Entry] = []
        self._threshold = handoff_tokens
        self._known_tokens: int | None = None
        self._new_bytes = 0

    def add(self, entry: Entry) -> None:
        """Appends an entry."""
        self.history.append(entry)
        self._new_bytes += size_bytes(entry)

    def measured(self, input_tokens: int | None) -> None:
        """Notes what the endpoint counted for the history as it is now."""
        if input_tokens is not None:
            self._known_tokens = input_tokens
            self._new_bytes = 0

    @property
    def is_full(self) -> bool:
        """Whether the next request may be too large for the window."""
        known = self._known_tokens
        base = len(self.system.encode()) if known is None else known
        return base + self._new_bytes >= self._threshold and len(self.history) > 1

    def summary_request(self) -> list[Entry]:
        """What to ask in order to get a summary.

        After tool results, whose calls must come before them; a trailing prompt is left out,
        since it survives the hand-over.
        """
        history = list(self.history)
        if isinstance(history[-1], User):
            history.pop()
        return [*history, User(SUMMARY_REQUEST)]

    def hand_over(self, summary: str) -> None:
        """Puts a summary and the latest prompt in the place of the history."""
        prompts = [entry for entry in self.history if isinstance(entry, User)]
        latest = prompts[-1].text if prompts else ""
        text = f"[Summary of the conversation so far]\n{summary}\n\n{latest}"
        self.history = []
        self._known_tokens = None
        self._new_bytes = 0
        self.add(User(text))


def size_bytes(entry: Entry) -> int:
    """The bytes of an entry's text, about one token each at worst."""
    if isinstance(entry, User):
        return len(entry.text.encode("utf-8", "replace"))
    if isinstance(entry, ToolResults):
        return sum(len(result.text.encode("utf-8", "replace")) for result in entry.results)
    return len(json.dumps(entry.replay or entry.text, default=str))


def last_text(history: Sequence[Entry]) -> str:
    """What the model said last."""
    said = [entry.text for entry in history if isinstance(entry, Assistant)]
    return said[-1] if said else ""
