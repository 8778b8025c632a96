"""Judges ``user-mention``: the right total, and its requester notified by the event itself."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

# The kit lies beside this folder's files in a container, and two levels above in the repository.
HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), *(str(folder) for folder in list(HERE.parents)[2:3])]

from verifier_kit import Evidence, Row, Verifier, has_amount, key_of  # noqa: E402

TASK = "user-mention"
USER = "John Vincent Doe"
ANNUAL_TOTAL = 5_328


def answer_correct(seen: Evidence) -> bool:
    """Some number of the final is the annual total."""
    final = seen.final_after_task
    return final is not None and has_amount(final.text, ANNUAL_TOTAL)


def user_p_tagged(seen: Evidence) -> bool:
    """The final notifies the only user, by derived field and by tag; a written name does not."""
    final = seen.final_after_task
    user = only_user(seen)
    key = key_of(user[1]) if user else None
    return final is not None and final.mentions(key) and final.has_tag_beginning(["p", key])


def three_word_user(seen: Evidence) -> bool:
    """The only user bears the display name that no single word stands for."""
    user = only_user(seen)
    return user is not None and user[0] == USER


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
    """The evidence is whole and this task's, with one task event, one user and a final."""
    return (
        seen.is_complete(TASK)
        and seen.has_task_event_once
        and seen.names_channel
        and only_user(seen) is not None
        and seen.final_after_task is not None
    )


def only_user(seen: Evidence) -> tuple[str, Row] | None:
    """Name and row of the only identity with role ``user``."""
    users = [item for item in seen.identities.items() if item[1].get("role") == "user"]
    return users[0] if len(users) == 1 else None


def details(seen: Evidence) -> dict[str, Any]:
    """Which message was judged and whom it should notify."""
    final = seen.final_after_task
    user = only_user(seen)
    return {
        "final_message_id": final and final.id,
        "final_text": final and final.text,
        "mentioned_pubkeys": final and final.mentioned,
        "user_name": user and user[0],
        "user_pubkey": user and key_of(user[1]),
    }


VERIFIER = Verifier(
    dimensions=(
        answer_correct,
        user_p_tagged,
        three_word_user,
        same_channel,
        expected_author,
        evidence_complete,
    ),
    details=details,
)

if __name__ == "__main__":
    sys.exit(VERIFIER.run())
