"""Judges ``multiline-message``: a block of text that arrives with its lines as they were."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

# The kit lies beside this folder's files in a container, and two levels above in the repository.
HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), *(str(folder) for folder in list(HERE.parents)[2:3])]

from verifier_kit import Evidence, Verifier  # noqa: E402

TASK = "multiline-message"
USER = "Eleanor June Brooks"
BLOCK = """\
Release readiness

- API: ready
- Database: ready
- Rollback: tested

Owner: Platform Operations"""
NEWLINES = 6


def layout_preserved(seen: Evidence) -> bool:
    """The final contains the block, byte for byte."""
    return seen.final is not None and BLOCK in seen.final.text


def real_newlines(seen: Evidence) -> bool:
    """The final has its newlines as such, and none spelled as a backslash and an ``n``."""
    return (
        seen.final is not None
        and "\\n" not in seen.final.text
        and seen.final.text.count("\n") >= NEWLINES
    )


def reply_to_thread(seen: Evidence) -> bool:
    """The final replies to the task event."""
    return seen.final is not None and seen.final.replies_to(seen.task_event_id)


def user_mentioned(seen: Evidence) -> bool:
    """The final notifies the requester."""
    return seen.final is not None and seen.final.mentions(seen.named_key(USER))


def evidence_complete(seen: Evidence) -> bool:
    """The evidence is whole and this task's, names its parts, and holds one agent message."""
    return (
        seen.is_complete(TASK)
        and seen.names_task_event
        and seen.names_channel
        and seen.named_key(USER) is not None
        and len(seen.agent_messages) == 1
    )


def details(seen: Evidence) -> dict[str, Any]:
    """Which message was judged and whom it should notify."""
    final = seen.final
    return {
        "final_message_id": final and final.id,
        "final_text": final and final.text,
        "newlines": final and final.text.count("\n"),
        "user_pubkey": seen.named_key(USER),
    }


VERIFIER = Verifier(
    dimensions=(
        layout_preserved,
        real_newlines,
        reply_to_thread,
        user_mentioned,
        evidence_complete,
    ),
    details=details,
)

if __name__ == "__main__":
    sys.exit(VERIFIER.run())
