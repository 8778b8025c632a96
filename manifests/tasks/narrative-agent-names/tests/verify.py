"""Judges ``narrative-agent-names``: bots that are written about and not woken."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

# The kit lies beside this folder's files in a container, and two levels above in the repository.
HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), *(str(folder) for folder in list(HERE.parents)[2:3])]

from verifier_kit import Evidence, Verifier, has_in_sentence  # noqa: E402

TASK = "narrative-agent-names"
USER = "Maya Elise Chen"
STATUS = {"Aurora Audit Bot": "completed", "Beacon Deploy Bot": "idle"}


def status_correct(seen: Evidence) -> bool:
    """The final says of each bot what it does, within one sentence and line."""
    final = seen.final
    return final is not None and all(
        has_in_sentence(final.text, name, word) for name, word in STATUS.items()
    )


def bots_not_mentioned(seen: Evidence) -> bool:
    """No agent message notifies a bot or spells its mention."""
    return seen.leaves_asleep(tuple(STATUS))


def user_mentioned(seen: Evidence) -> bool:
    """The final notifies the requester."""
    return seen.final is not None and seen.final.mentions(seen.named_key(USER))


def reply_to_thread(seen: Evidence) -> bool:
    """The final replies to the task event."""
    return seen.final is not None and seen.final.replies_to(seen.task_event_id)


def evidence_complete(seen: Evidence) -> bool:
    """The evidence is whole and this task's, with two names and one agent message."""
    return (
        seen.is_complete(TASK)
        and len(seen.directory_keys()) == len(STATUS)
        and len(seen.agent_messages) == 1
    )


def details(seen: Evidence) -> dict[str, Any]:
    """Which message was judged, whom it should notify and whom not."""
    final = seen.final
    directory = seen.directory_keys()
    return {
        "bot_pubkeys": [directory.get(name) for name in STATUS],
        "final_message_id": final and final.id,
        "final_text": final and final.text,
        "mentioned_pubkeys": final and final.mentioned,
        "user_pubkey": seen.named_key(USER),
    }


VERIFIER = Verifier(
    dimensions=(
        status_correct,
        bots_not_mentioned,
        user_mentioned,
        reply_to_thread,
        evidence_complete,
    ),
    details=details,
)

if __name__ == "__main__":
    sys.exit(VERIFIER.run())
