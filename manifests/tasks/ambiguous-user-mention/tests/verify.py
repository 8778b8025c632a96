"""Judges ``ambiguous-user-mention``: of two people with one name, the right one is notified."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

# The kit lies beside this folder's files in a container, and two levels above in the repository.
HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), *(str(folder) for folder in list(HERE.parents)[2:3])]

from verifier_kit import Evidence, Message, Verifier, last  # noqa: E402

TASK = "ambiguous-user-mention"
USER = "Olivia Grace Park"
TARGET = "taylor-release-captain"
OTHER = "taylor-observer"
MESSAGE = "ORCHID-72 approved"
SENT_WORDS = ("sent", "notified", "delivered")


def target_notified_once(seen: Evidence) -> bool:
    """Exactly one agent message notifies the intended person."""
    return delivery(seen) is not None


def other_not_notified(seen: Evidence) -> bool:
    """No agent message notifies the namesake; one that is not known was not notified."""
    return not notifications(seen, OTHER)


def message_correct(seen: Evidence) -> bool:
    """The delivery says what was asked for."""
    found = delivery(seen)
    return found is not None and MESSAGE in found.text


def user_callback(seen: Evidence) -> bool:
    """A message of its own tells the requester that it was sent."""
    found = callback(seen)
    return found is not None and any(word in found.text.casefold() for word in SENT_WORDS)


def reply_to_thread(seen: Evidence) -> bool:
    """Delivery and callback reply to the task event."""
    return all(
        message is not None and message.replies_to(seen.task_event_id)
        for message in (delivery(seen), callback(seen))
    )


def evidence_complete(seen: Evidence) -> bool:
    """The evidence is whole and this task's, with two people of two known keys."""
    people = seen.directory_keys("identity_id")
    target, other = people.get(TARGET), people.get(OTHER)
    return (
        seen.is_complete(TASK)
        and len(people) == 2
        and target is not None
        and other is not None
        and target != other
    )


def notifications(seen: Evidence, identity_id: str) -> list[Message]:
    """The agent messages that notify a member of the directory."""
    key = seen.directory_keys("identity_id").get(identity_id)
    return [message for message in seen.agent_messages if message.mentions(key)]


def delivery(seen: Evidence) -> Message | None:
    """The only agent message that notifies the target; null with none or several."""
    found = notifications(seen, TARGET)
    return found[0] if len(found) == 1 else None


def callback(seen: Evidence) -> Message | None:
    """The last agent message that notifies the requester and not the target."""
    user = seen.named_key(USER)
    target = seen.directory_keys("identity_id").get(TARGET)
    return last([m for m in seen.agent_messages if m.mentions(user) and not m.mentions(target)])


def details(seen: Evidence) -> dict[str, Any]:
    """Who is who, which messages were judged, and how often each was notified."""
    people = seen.directory_keys("identity_id")
    sent, told = delivery(seen), callback(seen)
    return {
        "callback_message_id": told and told.id,
        "callback_text": told and told.text,
        "delivery_message_id": sent and sent.id,
        "delivery_text": sent and sent.text,
        "other_notification_count": len(notifications(seen, OTHER)),
        "other_pubkey": people.get(OTHER),
        "target_notification_count": len(notifications(seen, TARGET)),
        "target_pubkey": people.get(TARGET),
    }


VERIFIER = Verifier(
    dimensions=(
        target_notified_once,
        other_not_notified,
        message_correct,
        user_callback,
        reply_to_thread,
        evidence_complete,
    ),
    details=details,
)

if __name__ == "__main__":
    sys.exit(VERIFIER.run())
