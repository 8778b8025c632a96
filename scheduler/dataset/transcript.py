"""Evidence, version 1, of a transcript: what the harness would have written of it. Pure.

Keys and ids are stand-ins that depend on names alone, so that a transcript's evidence is the same
wherever it is made.
"""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from scheduler.dataset.proof import MadeChannel, Transcript
from workers.contract.evidence import channel_of, mentioned, reply_target
from workers.contract.task import Fixture, Task

CHANNEL = "6f0b3a52-0a51-4c39-9a0e-5f2d6c1b7e11"
AGENT = "solo-1"
START = 1_750_000_000
TASK_LABEL = "task"

Document = dict[str, Any]


def key_of(identity: str) -> str:
    """A stand-in for a public key: 64 hex digits that depend on the identity alone."""
    return hashlib.sha256(f"key of {identity}".encode()).hexdigest()


def event_id(label: str) -> str:
    """A stand-in for an event id."""
    return hashlib.sha256(f"event {label}".encode()).hexdigest()


def user_name(task: Task) -> str:
    """The trial user's display name."""
    return (task.fixture and task.fixture.user_display_name) or "user"


def message(
    label: str,
    author: tuple[str, str, str],
    text: str,
    *,
    reply_to: str | None = None,
    mentions: Sequence[str] = (),
) -> Document:
    """A message of the trial's channel, its derived fields made from its tags.

    Args:
        label: what its id is made from.
        author: name, role and key.
        text: its content.
        reply_to: an event id.
        mentions: keys.
    """
    tags = [["h", CHANNEL]]
    if reply_to is not None:
        tags.append(["e", reply_to, "", "reply"])
    tags.extend(["p", key] for key in mentions)
    name, role, key = author
    return derive(
        {
            "id": event_id(label),
            "kind": 9,
            "created_at": START,
            "pubkey": key,
            "author": name,
            "author_role": role,
            "content": text,
            "tags": tags,
        }
    )


def derive(row: Document) -> Document:
    """The message with its derived fields made anew from its tags."""
    tags = tuple(tuple(tag) for tag in row["tags"])
    row["channel_id"] = channel_of(tags)
    row["reply_to_event_id"] = reply_target(tags)
    row["mentioned_pubkeys"] = list(mentioned(tags))
    return row


def by_agent(
    label: str, text: str, *, reply_to: str | None = None, mentions: Sequence[str] = ()
) -> Document:
    """A message of the orchestrator."""
    author = (AGENT, "orchestrator", key_of(AGENT))
    return message(label, author, text, reply_to=reply_to, mentions=mentions)


def scene(task: Task) -> Document:
    """Evidence of a trial in which the agent has not spoken."""
    fixture = task.fixture or Fixture()
    entries = fixture.entries
    name = user_name(task)
    user = (name, "user", key_of(name))
    root = message(TASK_LABEL, user, f"@{AGENT} {task.instruction}", mentions=[key_of(AGENT)])
    messages, scripted = [root], []
    actors = {entry.key_id: (entry.name, entry.role, key_of(entry.key_id)) for entry in entries}
    for script in fixture.scripted_messages:
        actor = user if script.actor == "user" else actors[script.actor]
        reply_to = root["id"] if script.reply_to_task else None
        text = script.content.replace("{orchestrator}", AGENT).replace("{user}", name)
        called = [key_of(AGENT)] if script.mention_orchestrator else []
        messages.append(message(script.label, actor, text, reply_to=reply_to, mentions=called))
        scripted.append(
            {
                "label": script.label,
                "event_id": messages[-1]["id"],
                "actor": script.actor,
                "reply_to_event_id": reply_to,
            }
        )
    return {
        "schema_version": 1,
        "trial": {"run_id": "walk-1", "trial_id": "a1/1", "channel_id": CHANNEL},
        "task_event_id": root["id"],
        "completion_message_id": None,
        "task_name": task.bare_name,
        "identities": {
            name: {"role": "user", "pubkey": user[2]},
            AGENT: {"role": "orchestrator", "pubkey": key_of(AGENT)},
        },
        "directory": [
            {
                "identity_id": entry.key_id,
                "name": entry.name,
                "role": entry.role,
                "pubkey": key_of(entry.key_id),
                "about": entry.about,
            }
            for entry in entries
        ],
        "scripted_events": scripted,
        "observed_channels": [],
        "message_count": len(messages),
        "truncated": False,
        "messages": messages,
    }


def evidence_of(task: Task, transcript: Transcript) -> Document:
    """The evidence of a transcript."""
    evidence = scene(task)
    names = {"user": user_name(task), "agent": AGENT}
    for number, said in enumerate(transcript.says, 1):
        evidence["messages"].append(
            by_agent(
                said.label or f"said {number}",
                said.text,
                reply_to=None if said.reply_to is None else event_id(said.reply_to),
                mentions=[key_of(names.get(who, who)) for who in said.mentions],
            )
        )
    evidence["message_count"] = len(evidence["messages"])
    if transcript.says:
        evidence["completion_message_id"] = evidence["messages"][-1]["id"]
    evidence["observed_channels"] = [
        _channel(number, made, names) for number, made in enumerate(transcript.channels)
    ]
    return merged(evidence, transcript.evidence)


def merged(document: Document, patch: Mapping[str, Any]) -> Document:
    """A document with a merge patch laid over it (RFC 7396)."""
    made = copy.copy(document)
    for name, value in patch.items():
        if value is None:
            made.pop(name, None)
        elif isinstance(value, Mapping):
            inner = made.get(name)
            made[name] = merged(inner if isinstance(inner, dict) else {}, value)
        else:
            made[name] = copy.deepcopy(value)
    return made


def _channel(number: int, made: MadeChannel, names: Mapping[str, str]) -> Document:
    fields = made.model_dump(mode="json", exclude={"members"})
    members = [
        {"pubkey": key_of(names.get(who, who)), "role": role} for who, role in made.members.items()
    ]
    return {"channel_id": f"11e1f7c4-6f0e-4f0e-8d55-{number:012x}", **fields, "members": members}
