"""What the relay says to a submitted event."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Answer:
    """The content of an ``OK``, and the status that the same answer has over HTTP."""

    accepted: bool
    message: str = ""
    status: int = 200


def refuse(reason: str, status: int = 400) -> Answer:
    """A refusal. A missing right in a channel is a 400, a wrong identity a 403 (Buzz)."""
    return Answer(False, reason, status)


ACCEPTED = Answer(True)
NOT_A_MEMBER = refuse("restricted: not a channel member")
