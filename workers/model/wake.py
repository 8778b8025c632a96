"""The messages that woke the agent, read from the event blocks of its prompts. Pure.

The blocks are those of buzz-acp and of the reference agent (spec: buzz-wire 4.7).
"""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass

_KEY = r"(?:[0-9a-f]{64}|npub1[02-9ac-hj-np-z]{58})"
_EVENT = re.compile(r"^Event ID:\s*([0-9a-f]{64})\b", re.MULTILINE)
_CHANNEL = re.compile(
    r"^Channel:.*?([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})", re.MULTILINE
)
_FROM = re.compile(rf"^From:.*?\b({_KEY})\b", re.MULTILINE)
_CONTENT = re.compile(r"^Content:[ \t]?(.*?)(?=^Tags:|\Z)", re.MULTILINE | re.DOTALL)
_ADDRESS = re.compile(r"^\s*(?:@[\w.-]+[,:]?\s+)+")


@dataclass(frozen=True)
class Wake:
    """One message that mentions the agent."""

    event: str
    channel: str
    sender: str
    """The key, hex or npub, as the block has it."""
    text: str
    """Without the names it is addressed to."""


def read_wakes(prompts: tuple[str, ...]) -> tuple[Wake, ...]:
    """The messages of all prompts, in order, each once."""
    found: dict[str, Wake] = {}
    for prompt in prompts:
        starts = [match.start() for match in _EVENT.finditer(prompt)]
        for start, end in itertools.pairwise([*starts, len(prompt)]):
            wake = _read(prompt[start:end], prompt)
            if wake is not None:
                found.setdefault(wake.event, wake)
    return tuple(found.values())


def _read(block: str, prompt: str) -> Wake | None:
    event, content = _EVENT.search(block), _CONTENT.search(block)
    channel = _CHANNEL.search(block) or _CHANNEL.search(prompt)
    sender = _FROM.search(block)
    if event is None or channel is None or sender is None or content is None:
        return None
    text = _ADDRESS.sub("", content[1].rstrip("\n"))
    return Wake(event[1], channel[1], sender[1], text)
