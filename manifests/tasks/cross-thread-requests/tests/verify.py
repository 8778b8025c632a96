"""Judges ``cross-thread-requests``: two requests at once, each answered in its own place."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

# The kit lies beside this folder's files in a container, and two levels above in the repository.
HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), *(str(folder) for folder in list(HERE.parents)[2:3])]

from verifier_kit import Evidence, Message, Verifier, has_labelled, has_word, last  # noqa: E402

TASK = "cross-thread-requests"
USER = "Priya Simone Patel"
SECOND_REQUEST = "beta-request"
ALPHA = ("ALPHA", "346")
BETA = ("BETA", "41")


def alpha_correct(seen: Evidence) -> bool:
    """The last reply to the first request labels and states its result."""
    reply = alpha_reply(seen)
    return reply is not None and has_labelled(reply.text, *ALPHA, whole=True)


def beta_correct(seen: Evidence) -> bool:
    """The last reply to the second request labels and states its result."""
    reply = beta_reply(seen)
    return reply is not None and has_labelled(reply.text, *BETA, whole=True)


def thread_isolation(seen: Evidence) -> bool:
    """The two replies are all that the agent wrote, and neither speaks of the other."""
    alpha, beta = alpha_reply(seen), beta_reply(seen)
    return (
        alpha is not None
        and beta is not None
        and len(seen.agent_messages) == 2
        and alpha.id != beta.id
        and not has_word(alpha.text, BETA[0])
        and not has_word(beta.text, ALPHA[0])
    )


def user_mentioned_twice(seen: Evidence) -> bool:
    """Both replies notify the requester."""
    user = seen.named_key(USER)
    return all(
        reply is not None and reply.mentions(user)
        for reply in (alpha_reply(seen), beta_reply(seen))
    )


def evidence_complete(seen: Evidence) -> bool:
    """The evidence is whole and this task's, and names both requests."""
    return (
        seen.is_complete(TASK)
        and seen.names_task_event
        and len(seen.scripted_rows(SECOND_REQUEST)) == 1
        and isinstance(seen.scripted_id(SECOND_REQUEST), str)
    )


def alpha_reply(seen: Evidence) -> Message | None:
    """The agent's last message that replies to the task event."""
    return last([m for m in seen.agent_messages if m.replies_to(seen.task_event_id)])


def beta_reply(seen: Evidence) -> Message | None:
    """The agent's last message that replies to the scripted request; null without such a row."""
    if not seen.scripted_rows(SECOND_REQUEST):
        return None
    event_id = seen.scripted_id(SECOND_REQUEST)
    return last([m for m in seen.agent_messages if m.replies_to(event_id)])


def details(seen: Evidence) -> dict[str, Any]:
    """Which messages were judged, and whom they should notify."""
    alpha, beta = alpha_reply(seen), beta_reply(seen)
    return {
        "alpha_message_id": alpha and alpha.id,
        "alpha_text": alpha and alpha.text,
        "beta_event_id": seen.scripted_id(SECOND_REQUEST),
        "beta_message_id": beta and beta.id,
        "beta_text": beta and beta.text,
        "user_pubkey": seen.named_key(USER),
    }


VERIFIER = Verifier(
    dimensions=(
        alpha_correct,
        beta_correct,
        thread_isolation,
        user_mentioned_twice,
        evidence_complete,
    ),
    details=details,
)

if __name__ == "__main__":
    sys.exit(VERIFIER.run())
