"""Values of the trial's contract with sensible defaults."""

from __future__ import annotations

from typing import Any

from workers.contract.evidence import (
    DirectoryRow,
    Evidence,
    Identity,
    Message,
    ScriptedEvent,
    TrialRef,
)

CHANNEL = "6f1c1b9e-7a3f-4d53-9d53-0d2a0d6f2d11"
USER = "a" * 64
AGENT = "b" * 64
BOT = "c" * 64
TASK_EVENT = "1" * 64
REPLY_EVENT = "2" * 64


def message(event_id: str, pubkey: str, *tags: tuple[str, ...], **changes: Any) -> Message:
    """A message of the trial's channel whose derived fields agree with its tags."""
    all_tags = (("h", CHANNEL), *tags)
    values: dict[str, Any] = {
        "id": event_id,
        "kind": 9,
        "created_at": 1_800_000_000,
        "pubkey": pubkey,
        "author": "somebody",
        "author_role": {USER: "user", AGENT: "orchestrator"}.get(pubkey, "bot"),
        "content": "text",
        "tags": all_tags,
        "channel_id": CHANNEL,
        "reply_to_event_id": next((t[1] for t in tags if t[0] == "e" and t[3] == "reply"), None),
        "mentioned_pubkeys": tuple(t[1] for t in tags if t[0] == "p"),
    }
    return Message.model_validate({**values, **changes})


def evidence(*messages: Message, **changes: Any) -> Evidence:
    """Sound evidence: a task message and a reply to it."""
    kept = messages or (
        message(TASK_EVENT, USER, ("p", AGENT)),
        message(REPLY_EVENT, AGENT, ("e", TASK_EVENT, "", "reply"), ("p", USER)),
    )
    values: dict[str, Any] = {
        "trial": TrialRef(run_id="sweep", trial_id="attempt/1-1", channel_id=CHANNEL),
        "task_event_id": TASK_EVENT,
        "completion_message_id": None,
        "task_name": "user-mention",
        "identities": {
            "user": Identity(role="user", pubkey=USER),
            "solo-1": Identity(role="orchestrator", pubkey=AGENT),
        },
        "directory": (
            DirectoryRow(identity_id="bot", name="Bot", role="bot", pubkey=BOT, about=""),
        ),
        "scripted_events": (
            ScriptedEvent(label="report", event_id=TASK_EVENT, actor="bot", reply_to_event_id=None),
        ),
        "observed_channels": (),
        "message_count": len(kept),
        "truncated": False,
        "messages": kept,
    }
    return Evidence.model_validate({**values, **changes})
