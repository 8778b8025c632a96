"""Judges ``reply-to-thread``: the right projection, in the thread of the one who asked."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

# The kit lies beside this folder's files in a container, and two levels above in the repository.
HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), *(str(folder) for folder in list(HERE.parents)[2:3])]

from verifier_kit import Evidence, Verifier, has_amount  # noqa: E402

FIGURES = {"revenue": 160_811, "expense": 84_462, "profit": 374_470}


def answer_correct(seen: Evidence) -> bool:
    """Every figure stands on a line that also carries its label."""
    final = seen.final_after_task
    lines = final.text.splitlines() if final else []
    return all(
        any(label in line.casefold() and has_amount(line, figure) for line in lines)
        for label, figure in FIGURES.items()
    )


def reply_to_thread(seen: Evidence) -> bool:
    """The final replies to the task event, by derived field and by exact tag."""
    final = seen.final_after_task
    return (
        final is not None
        and final.replies_to(seen.task_event_id)
        and final.has_tag(["e", seen.task_event_id, "", "reply"])
    )


def same_channel(seen: Evidence) -> bool:
    """The final stands in the trial's channel, by derived field and by exact tag."""
    final = seen.final_after_task
    return (
        final is not None
        and final.stands_in(seen.channel_id)
        and final.has_tag(["h", seen.channel_id])
    )


def expected_author(seen: Evidence) -> bool:
    """There is a message of the agent to judge."""
    return seen.final_after_task is not None


def evidence_complete(seen: Evidence) -> bool:
    """The evidence is whole, and holds the task event once and a final; no look at the name."""
    return (
        seen.is_complete(task_name=None)
        and seen.has_task_event_once
        and seen.names_channel
        and seen.final_after_task is not None
    )


def details(seen: Evidence) -> dict[str, Any]:
    """Which message was judged."""
    final = seen.final_after_task
    return {"final_message_id": final and final.id, "final_text": final and final.text}


VERIFIER = Verifier(
    dimensions=(answer_correct, reply_to_thread, same_channel, expected_author, evidence_complete),
    details=details,
)

if __name__ == "__main__":
    sys.exit(VERIFIER.run())
