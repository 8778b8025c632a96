"""A small conversation as evidence."""

from __future__ import annotations

from typing import Any

from workers.contract.evidence import Evidence, Message, channel_of, mentioned, reply_target

USER, AGENT, BOT = "a" * 64, "b" * 64, "c" * 64
CHANNEL = "channel"
TASK, ANSWER = "1" * 64, "2" * 64


def message(
    identity: str,
    pubkey: str,
    text: str,
    *,
    at: int,
    mentions: tuple[str, ...] = (),
    reply_to: str | None = None,
    kind: int = 9,
) -> Message:
    """One message; derived fields are those of its tags."""
    tags: list[tuple[str, ...]] = [("h", CHANNEL), *(("p", key) for key in mentions)]
    if reply_to is not None:
        tags.append(("e", reply_to, "", "reply"))
    authors = {USER: ("Ada Lovelace", "user"), AGENT: ("solo-1", "orchestrator")}
    author, role = authors.get(pubkey, ("", "unknown"))
    return Message(
        id=identity,
        kind=kind,
        created_at=at,
        pubkey=pubkey,
        author=author,
        author_role=role,
        content=text,
        tags=tuple(tags),
        channel_id=channel_of(tuple(tags)),
        reply_to_event_id=reply_target(tuple(tags)),
        mentioned_pubkeys=mentioned(tuple(tags)),
    )


def conversation(*messages: Message, **changes: Any) -> Evidence:
    """Evidence of these messages; by default a question and its answer in a thread."""
    spoken = messages or (
        message(TASK, USER, "What is 2 + 2?", at=1, mentions=(AGENT,)),
        message(ANSWER, AGENT, "It is 4.\n", at=5, mentions=(USER,), reply_to=TASK),
    )
    values: dict[str, Any] = {
        "trial": {"run_id": "sweep", "trial_id": "attempt/1-1", "channel_id": CHANNEL},
        "task_event_id": TASK,
        "completion_message_id": ANSWER,
        "task_name": "alpha",
        "identities": {
            "Ada Lovelace": {"role": "user", "pubkey": USER},
            "solo-1": {"role": "orchestrator", "pubkey": AGENT},
        },
        "directory": (
            {"identity_id": "bot", "name": "Bot", "role": "bot", "pubkey": BOT, "about": ""},
        ),
        "scripted_events": (),
        "observed_channels": (),
        "message_count": len(spoken),
        "truncated": False,
        "messages": spoken,
    }
    return Evidence.model_validate({**values, **changes})
