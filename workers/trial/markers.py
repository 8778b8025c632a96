"""The markers that an agent's log carries, and when a trial is complete by them.

Source: buzz-acp's log lines and the harness contract of Buzz: a solo run is complete when a
turn ended; with scripted messages when every turn that started has ended and every scripted
message was delivered; a team's when its orchestrator says ``DONE:``. A turn that failed is ours
to know of: Buzz logs nothing then, the reference agent does.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from workers.trial.handoff import Ending

_ANSI = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_READY = "subscribed to channel "
READY_WORDS = (b"subscribed",)
"""In the line that says that an agent is ready."""
_START = "turn starting for channel "
_COMPLETE = "turn complete for channel "
_FAILED = "turn failed for channel "
_STOPS = ("turn refused for ", "turn hit max_tokens for ", "turn hit max_turn_requests for ")
_CANCELLED = "turn cancelled for "
_DELIVERED = "turn delivered Buzz events for channel "
_STEERED = "non-cancelling steer ack received"
MARKER_WORDS = (b"turn", b"steer")
"""Every line that tells something holds one of them, whatever its colours."""
_EVENT_ID = re.compile(r"\b[0-9a-f]{64}\b")
_STEERED_ID = re.compile(r"event_id=([0-9a-f]{64})")


def is_ready(line: str, channel_id: str) -> bool:
    """Whether a log line says that its agent has subscribed to a channel."""
    return f"{_READY}{channel_id}" in without_colours(line)


def without_colours(line: str) -> str:
    """A log line without the codes that colour it."""
    return _ANSI.sub("", line)


@dataclass
class TurnLog:
    """What an orchestrator's log has told so far."""

    starts: int = 0
    ends: int = 0
    delivered: set[str] = field(default_factory=set)
    stopped: str = ""
    """The line of the last turn, if it ended by refusal or a limit."""
    failed: str = ""
    """The line of the last turn, if it ended in an error."""

    def read(self, lines: Iterable[str]) -> None:
        """Takes in log lines, colours and all."""
        for line in lines:
            self._read_line(without_colours(line))

    def _read_line(self, line: str) -> None:
        if _START in line:
            self.starts += 1
            self.stopped = self.failed = ""
        elif _FAILED in line:
            self.ends += 1
            self.failed = line[line.index(_FAILED) :][:300]
        elif _COMPLETE in line or _CANCELLED in line:
            self.ends += 1
        elif _DELIVERED in line:
            # The channel's id is a UUID, so every 64-hex token of the line is an event's.
            self.delivered.update(_EVENT_ID.findall(line))
        elif _STEERED in line and "ack=Ok(Success" in line:
            self.delivered.update(_STEERED_ID.findall(line))
        else:
            stop = next((marker for marker in _STOPS if marker in line), None)
            if stop is not None:
                self.ends += 1
                self.stopped = line[line.index(stop) :][:300]

    def ending(self, scripted_ids: Iterable[str]) -> Ending | None:
        """How a solo agent's run ended, or None while it goes on."""
        expected = set(scripted_ids)
        if self.ends == 0:
            return None
        if self.failed and self.ends >= self.starts:
            return Ending.TURN_FAILED
        if expected and (self.starts != self.ends or not expected <= self.delivered):
            return None
        return Ending.STOPPED if self.stopped else Ending.TURN_ENDED
