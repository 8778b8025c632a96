"""An accepted transcript of every task, built as the harness would have written it."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

from tests.manifests.task_verifiers import ACTION, CHECK_ID, NAMED_PATH, fixture, instruction
from workers.contract.evidence import channel_of, mentioned, reply_target

CHANNEL = "6f0b3a52-0a51-4c39-9a0e-5f2d6c1b7e11"
AGENT = "solo-1"
START = 1_750_000_000

Evidence = dict[str, Any]
Message = dict[str, Any]


def key_of(identity: str) -> str:
    """A stand-in for a public key: 64 hex digits that depend on the identity alone."""
    return hashlib.sha256(f"key of {identity}".encode()).hexdigest()


def event_id(label: str) -> str:
    """A stand-in for an event id."""
    return hashlib.sha256(f"event {label}".encode()).hexdigest()


def user_name(task: str) -> str:
    """The trial user's display name."""
    return fixture(task).user_display_name or "user"


def write(
    label: str,
    author: tuple[str, str, str],
    text: str,
    *,
    reply_to: str | None = None,
    mentions: Sequence[str] = (),
) -> Message:
    """A message of the trial's channel.

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


def derive(message: Message) -> Message:
    """The message with its derived fields made anew from its tags."""
    tags = tuple(tuple(tag) for tag in message["tags"])
    message["channel_id"] = channel_of(tags)
    message["reply_to_event_id"] = reply_target(tags)
    message["mentioned_pubkeys"] = list(mentioned(tags))
    return message


def by_agent(
    label: str, text: str, *, reply_to: str | None = None, mentions: Sequence[str] = ()
) -> Message:
    """A message of the orchestrator."""
    author = (AGENT, "orchestrator", key_of(AGENT))
    return write(label, author, text, reply_to=reply_to, mentions=mentions)


def accepted(task: str) -> Evidence:
    """Evidence that the task's verifier gives a reward of 1."""
    evidence = scene(task)
    evidence["messages"].extend(ANSWERS[task](task))
    evidence["message_count"] = len(evidence["messages"])
    evidence["completion_message_id"] = evidence["messages"][-1]["id"]
    return evidence


def scene(task: str) -> Evidence:
    """Evidence of a trial in which the agent has not spoken."""
    told = fixture(task)
    user = (user_name(task), "user", key_of(user_name(task)))
    root = write("task", user, f"@{AGENT} {instruction(task)}", mentions=[key_of(AGENT)])
    messages, scripted = [root], []
    for script in told.scripted_messages:
        actor = user if script.actor == "user" else (script.actor, "bot", key_of(script.actor))
        reply_to = root["id"] if script.reply_to_task else None
        text = script.content.replace("{orchestrator}", AGENT)
        messages.append(
            write(script.label, actor, text, reply_to=reply_to, mentions=[key_of(AGENT)])
        )
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
        "task_name": task,
        "identities": {
            user[0]: {"role": "user", "pubkey": user[2]},
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
            for entry in told.entries
        ],
        "scripted_events": scripted,
        "observed_channels": [_channel()] if told.observe_channel_names else [],
        "message_count": 0,
        "truncated": False,
        "messages": messages,
    }


def _channel() -> dict[str, Any]:
    roles = {
        AGENT: "owner",
        "benchmark-user-07": "member",
        "benchmark-user-19": "member",
        "benchmark-user-42": "member",
        "benchmark-bot-03": "bot",
        "benchmark-bot-08": "bot",
    }
    return {
        "channel_id": "11e1f7c4-6f0e-4f0e-8d55-0d4a7f6c9b02",
        "name": "fix-pr-1234",
        "channel_type": "stream",
        "visibility": "private",
        "ttl_seconds": 3600,
        "archived": False,
        "members": [{"pubkey": key_of(name), "role": role} for name, role in roles.items()],
    }


def _answer(text: str) -> Any:
    def messages(task: str) -> list[Message]:
        user = key_of(user_name(task))
        return [by_agent("answer", text, reply_to=event_id("task"), mentions=[user])]

    return messages


def _two_answers(task: str) -> list[Message]:
    user = [key_of(user_name(task))]
    return [
        by_agent("alpha", "ALPHA: 346", reply_to=event_id("task"), mentions=user),
        by_agent("beta", "BETA: 41", reply_to=event_id("beta-request"), mentions=user),
    ]


def _delivery_and_callback(task: str) -> list[Message]:
    root = event_id("task")
    target = [key_of("taylor-release-captain")]
    user = [key_of(user_name(task))]
    return [
        by_agent(
            "delivery", "@Taylor Morgan Lee ORCHID-72 approved", reply_to=root, mentions=target
        ),
        by_agent(
            "callback", "@Olivia Grace Park The message was sent.", reply_to=root, mentions=user
        ),
    ]


ANSWERS = {
    "reply-to-thread": _answer(
        "@user Month 6:\n- Revenue: $160,811\n- Expenses: $84,462\n"
        "- Operating profit, months 1 to 6: $374,470"
    ),
    "user-mention": _answer("@John Vincent Doe The licenses cost $5,328 a year."),
    NAMED_PATH: _answer(f'@user The CHECK_ID is {CHECK_ID} and the ACTION is "{ACTION}"'),
    "multiline-message": _answer(
        "@Eleanor June Brooks\n\nRelease readiness\n\n- API: ready\n- Database: ready\n"
        "- Rollback: tested\n\nOwner: Platform Operations"
    ),
    "narrative-agent-names": _answer(
        "@Maya Elise Chen\nAurora Audit Bot has completed the audit.\n"
        "Beacon Deploy Bot remains idle."
    ),
    "memory-retrieval": _answer("@user 352,345 customers in total."),
    "create-channel-invite-users": _answer("@user The channel is ready."),
    "interleaved-agent-reports": _answer(
        "@Nora Isabel Grant North 17, South 23, reserve 11, multiplier 3. Final value: 87."
    ),
    "cross-thread-requests": _two_answers,
    "ambiguous-user-mention": _delivery_and_callback,
}
