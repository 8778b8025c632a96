"""Judges ``memory-retrieval``: the one right memory, alone, in reply to the question."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

# The kit lies beside this folder's files in a container, and two levels above in the repository.
HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), *(str(folder) for folder in list(HERE.parents)[2:3])]

from verifier_kit import Evidence, Message, Verifier, last, numbers  # noqa: E402

TASK = "memory-retrieval"
ANSWER = 352_345
YEAR = 2024
DISTRACTORS = (361_250, 351_340, 2_400, 325_401, 3_710, 21_604)
"""What the other memories count: to name one means to have chosen wrongly, or not at all."""


def answer_correct(seen: Evidence) -> bool:
    """The judged message holds the answer and no further number but the year."""
    found = judged_numbers(seen)
    return ANSWER in found and not noise(found)


def threaded_reply(seen: Evidence) -> bool:
    """The agent answered in the trial's channel, in reply to the task event."""
    return reply(seen) is not None


def evidence_complete(seen: Evidence) -> bool:
    """The evidence is whole and this task's, and names task event and channel."""
    return seen.is_complete(TASK) and seen.names_task_event and seen.names_channel


def reply(seen: Evidence) -> Message | None:
    """The last message of the agent in the trial's channel that replies to the task event."""
    return last(
        [
            message
            for message in seen.agent_messages
            if message.stands_in(seen.channel_id) and message.replies_to(seen.task_event_id)
        ]
    )


def judged(seen: Evidence) -> Message | None:
    """The reply, or without one the agent's last message wherever it stands."""
    return reply(seen) or seen.final


def judged_numbers(seen: Evidence) -> list[float]:
    """The numbers of the judged message."""
    message = judged(seen)
    return list(numbers(message.text)) if message else []


def noise(found: list[float]) -> list[float]:
    """All numbers but the answer and the year that was asked about."""
    return [number for number in found if number not in (ANSWER, YEAR)]


def details(seen: Evidence) -> dict[str, Any]:
    """Which message was judged, what else it counted, and how the reward is put together.

    The reward is ``answer_correct`` times ``structural_score``.
    """
    message = judged(seen)
    found = judged_numbers(seen)
    return {
        "judged_message_id": message and message.id,
        "judged_text": message and message.text,
        "mentions_distractor": any(number in DISTRACTORS for number in found),
        "noise_numbers": noise(found),
        "structural_score": float(threaded_reply(seen)) * float(evidence_complete(seen)),
    }


VERIFIER = Verifier(
    dimensions=(answer_correct, threaded_reply, evidence_complete),
    details=details,
)

if __name__ == "__main__":
    sys.exit(VERIFIER.run())
