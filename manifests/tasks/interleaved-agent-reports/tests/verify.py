"""Judges ``interleaved-agent-reports``: three reports in one batch, all kept and used."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

# The kit lies beside this folder's files in a container, and two levels above in the repository.
HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), *(str(folder) for folder in list(HERE.parents)[2:3])]

from verifier_kit import Evidence, Message, Verifier, has_concluded, has_labelled  # noqa: E402

TASK = "interleaved-agent-reports"
USER = "Nora Isabel Grant"
REPORTERS = ("Ledger Scout", "Risk Sentinel", "Ops Forecaster")
REPORTS = ("ledger-report", "risk-report", "operations-report")
INPUTS = {"North": "17", "South": "23", "reserve": "11", "multiplier": "3"}
RESULT = "87"
RESULT_WORDS = ("final", "result", "forecast", "=")


def reports_delivered(seen: Evidence) -> bool:
    """The three reports are three different messages of the channel."""
    ids = [seen.scripted_id(label) for label in REPORTS]
    present = [message.id for message in seen.messages]
    return all(
        event_id is not None and ids.count(event_id) == 1 and event_id in present
        for event_id in ids
    )


def inputs_complete(seen: Evidence) -> bool:
    """The final labels each input; what follows a figure is free."""
    final = seen.final
    return final is not None and all(
        has_labelled(final.text, label, figure, whole=False) for label, figure in INPUTS.items()
    )


def answer_correct(seen: Evidence) -> bool:
    """The final states the result as such."""
    return seen.final is not None and has_concluded(seen.final.text, RESULT_WORDS, RESULT)


def single_human_callback(seen: Evidence) -> bool:
    """Exactly one agent message notifies the requester, and it is the final."""
    calls = callbacks(seen)
    return len(calls) == 1 and calls[0] is seen.final


def reporters_not_rementioned(seen: Evidence) -> bool:
    """No agent message notifies a reporter or spells its mention."""
    return seen.leaves_asleep(REPORTERS)


def reply_to_thread(seen: Evidence) -> bool:
    """The final replies to the task event."""
    return seen.final is not None and seen.final.replies_to(seen.task_event_id)


def evidence_complete(seen: Evidence) -> bool:
    """The evidence is whole and this task's, with three names and one agent message."""
    return (
        seen.is_complete(TASK)
        and len(seen.directory_keys()) == len(REPORTERS)
        and len(seen.agent_messages) == 1
    )


def callbacks(seen: Evidence) -> list[Message]:
    """The agent messages that notify the requester."""
    return [message for message in seen.agent_messages if message.mentions(seen.named_key(USER))]


def details(seen: Evidence) -> dict[str, Any]:
    """Which message was judged, which reports it had, and who was called."""
    final = seen.final
    directory = seen.directory_keys()
    return {
        "callback_message_ids": [message.id for message in callbacks(seen)],
        "final_message_id": final and final.id,
        "final_text": final and final.text,
        "report_event_ids": [seen.scripted_id(label) for label in REPORTS],
        "reporter_pubkeys": [directory.get(name) for name in REPORTERS],
        "user_pubkey": seen.named_key(USER),
    }


VERIFIER = Verifier(
    dimensions=(
        reports_delivered,
        inputs_complete,
        answer_correct,
        single_human_callback,
        reporters_not_rementioned,
        reply_to_thread,
        evidence_complete,
    ),
    details=details,
)

if __name__ == "__main__":
    sys.exit(VERIFIER.run())
