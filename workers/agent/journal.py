"""The agent's log: one line an entry on standard output, with the markers that harnesses read.

The markers' wording is buzz-acp's; ``turn failed`` is ours, since Buzz logs nothing there.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterable

_lock = threading.Lock()

END_MARKERS = {
    "end_turn": "turn complete for channel {}: end_turn",
    "cancelled": "turn cancelled for channel {}",
    "max_tokens": "turn hit max_tokens for channel {}",
    "max_turn_requests": "turn hit max_turn_requests for channel {}",
    "refusal": "turn refused for channel {}",
}


def write(message: str) -> None:
    """Writes one entry: UTC time with milliseconds, then the message on a single line."""
    now = time.time()
    stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now))
    line = " ".join(message.split())
    with _lock:
        sys.stdout.write(f"{stamp}.{int(now * 1000) % 1000:03d}Z {line}\n")
        sys.stdout.flush()


def subscribed(channel: str) -> None:
    """The relay has sent all stored mentions of a channel and will send new ones as they come."""
    write(f"subscribed to channel {channel}")


def turn_starting(channel: str) -> None:
    """A prompt is about to be worked on."""
    write(f"turn starting for channel {channel}")


def turn_ended(channel: str, stop_reason: str, delivered: Iterable[str]) -> None:
    """A turn ended without an error; ``delivered`` are the events that reached the model.

    The delivery comes first, so that whoever counts ends knows of it by then.
    """
    ids = ",".join(sorted(delivered))
    if ids:
        write(f"turn delivered Buzz events for channel {channel}: {ids}")
    write(END_MARKERS[stop_reason].format(channel))


def turn_failed(channel: str, reason: str) -> None:
    """A turn ended in an error."""
    write(f"turn failed for channel {channel}: {reason}")
