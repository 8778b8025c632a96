"""What can go wrong with a transcript, one step at a time.

An operator changes evidence in place and takes every choice it has through ``pick``. So the same
operators serve a random search (the property tests pick) and a complete one (``every_mutant``).
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from tests.manifests.task_transcripts import (
    AGENT,
    Evidence,
    Message,
    by_agent,
    derive,
    event_id,
    key_of,
)

Choice = TypeVar("Choice")


class Pick:
    """Makes an operator's choices."""

    def __init__(self, choose: Callable[[Sequence[Any]], Any]) -> None:
        self._choose = choose

    def __call__(self, choices: Sequence[Choice]) -> Choice:
        """One of some choices; without any, the operator does not apply."""
        if not choices:
            raise NotApplicableError
        chosen: Choice = self._choose(choices)
        return chosen


class NotApplicableError(Exception):
    """An operator finds nothing to work on."""


Operator = Callable[[Evidence, Pick], None]

STRANGER = key_of("a stranger")


def drop_message(evidence: Evidence, pick: Pick) -> None:
    evidence["messages"].pop(pick(range(len(evidence["messages"]))))


def duplicate_message(evidence: Evidence, pick: Pick) -> None:
    messages = evidence["messages"]
    copied = copy.deepcopy(pick(messages))
    if pick((True, False)):
        copied["id"] = event_id("a copy")
    messages.insert(pick(range(len(messages) + 1)), copied)


def move_message(evidence: Evidence, pick: Pick) -> None:
    """Also before the root."""
    messages = evidence["messages"]
    message = messages.pop(pick(range(len(messages))))
    messages.insert(pick(range(len(messages) + 1)), message)


def reverse_messages(evidence: Evidence, pick: Pick) -> None:
    evidence["messages"].reverse()


def reauthor_message(evidence: Evidence, pick: Pick) -> None:
    pick(evidence["messages"])["pubkey"] = pick((*known_keys(evidence), STRANGER, None))


def add_message(evidence: Evidence, pick: Pick) -> None:
    """One more word of the agent, such as a first "On it."."""
    root = evidence.get("task_event_id")
    message = by_agent(
        "one more",
        pick(("On it.", "352,345 sent = 87", "ALPHA: 346, BETA: 41", *texts(evidence))),
        reply_to=pick((root if isinstance(root, str) else None, None, event_id("nothing"))),
        mentions=pick(([], known_keys(evidence)[:1], known_keys(evidence)[-1:])),
    )
    messages = evidence["messages"]
    messages.insert(pick(range(len(messages) + 1)), message)


def remove_tag(evidence: Evidence, pick: Pick) -> None:
    message = pick(evidence["messages"])
    message["tags"].pop(pick(range(len(message["tags"]))))
    derive(message)


def remove_tag_only(evidence: Evidence, pick: Pick) -> None:
    """The derived fields go on telling of it."""
    message = pick(evidence["messages"])
    message["tags"].pop(pick(range(len(message["tags"]))))


def forge_tag(evidence: Evidence, pick: Pick) -> None:
    message = pick(evidence["messages"])
    root = event_id("task")
    tag = pick(
        (
            ["e", event_id("nothing"), "", "reply"],
            ["e", root, "", "reply"],
            ["e", root, "", "root"],
            ["e", root, "ws://localhost:3600", "reply"],
            ["e", root],
            ["p", STRANGER],
            ["h", "another channel"],
            *(["p", key] for key in known_keys(evidence)),
        )
    )
    message["tags"].insert(pick((0, len(message["tags"]))), tag)
    derive(message)


def forge_derived(evidence: Evidence, pick: Pick) -> None:
    """A derived field that no tag stands behind."""
    message = pick(evidence["messages"])
    field, value = pick(
        (
            ("reply_to_event_id", event_id("task")),
            ("reply_to_event_id", None),
            ("mentioned_pubkeys", []),
            ("mentioned_pubkeys", [STRANGER]),
            ("mentioned_pubkeys", known_keys(evidence)),
            ("channel_id", "another channel"),
            ("channel_id", None),
        )
    )
    message[field] = value


def move_tag_into_text(evidence: Evidence, pick: Pick) -> None:
    message = pick(evidence["messages"])
    tag = pick([tag for tag in message["tags"] if tag[0] in ("p", "e", "h")])
    message["tags"].remove(tag)
    spelled = pick((f"{tag}", f"@{tag[1]}", f"nostr:{tag[1]}", "@Taylor Morgan Lee", "@user"))
    message["content"] = f"{spelled} {message['content']}"
    derive(message)


def write_mention(evidence: Evidence, pick: Pick) -> None:
    """A mention that is text alone, bare or in a code span."""
    message = pick(agent_messages(evidence))
    names = [*evidence.get("identities", {}), *(row["name"] for row in evidence["directory"][:3])]
    name = pick([name for name in names if name])
    message["content"] += pick((f" @{name}", f" `@{name}`", f" {name}", f" @{name.lower()}"))


def change_number(evidence: Evidence, pick: Pick) -> None:
    message = pick(agent_messages(evidence))
    match = pick(list(re.finditer(r"\d[\d,]*", message["content"])))
    value = int(match.group().replace(",", "").replace("chc-", "") or "0")
    changed = pick(
        (
            str(value + 1),
            str(value - 1),
            str(value + 2),
            f"{value:,}",
            str(value),
            f"{value:,}.00",
            f"{value}.4",
            f"{value}0",
            f"-{value}",
            f"${value}",
            f"x{value}",
            f"_{value}",
            f"é{value}",
            f"{value:,}".translate(FULL_WIDTH),
            f"{value}".translate(ARABIC),
            f"{value / 1000:g} thousand",
            "many",
            "three hundred and forty-six",
        )
    )
    start, end = match.span()
    message["content"] = message["content"][:start] + changed + message["content"][end:]


def change_text(evidence: Evidence, pick: Pick) -> None:
    message = pick(agent_messages(evidence))
    change: Callable[[str], str] = pick(
        (
            str.upper,
            str.lower,
            str.swapcase,
            lambda text: text.replace("\n", " "),
            lambda text: text.replace("\n", "\\n"),
            lambda text: text.replace("\n", "\r\n"),
            lambda text: text.replace("\n\n", "\n"),
            lambda text: text.replace(". ", "\n"),
            lambda text: text.replace(" ", "  "),
            lambda text: text.replace(" ", "\n"),
            lambda text: f"```\n{text}\n```",
            lambda text: f"| {text} |",
            lambda text: f"{text} 2024",
            lambda text: f"{text} April 30",
            lambda text: f"{text} 361,250",
            lambda text: f"{text}\n\nALPHA beta ORCHID-72",
            lambda text: text[::-1],
            lambda text: text[: len(text) // 2],
            lambda text: "",
        )
    )
    message["content"] = change(message["content"])


def drop_word(evidence: Evidence, pick: Pick) -> None:
    message = pick(agent_messages(evidence))
    words = re.split(r"( |\n)", message["content"])
    words.pop(pick(range(len(words))))
    message["content"] = "".join(words)


def change_head(evidence: Evidence, pick: Pick) -> None:
    field, value = pick(
        (
            ("schema_version", 2),
            ("schema_version", 0),
            ("schema_version", "1"),
            ("schema_version", None),
            ("schema_version", 1.0),
            ("schema_version", True),
            ("truncated", True),
            ("truncated", None),
            ("truncated", 0),
            ("truncated", "false"),
            ("task_name", "another-task"),
            ("task_name", f"buzz-native/{evidence.get('task_name')}"),
            ("task_name", None),
            ("task_event_id", None),
            ("task_event_id", 5),
            ("task_event_id", event_id("nothing")),
            ("task_event_id", event_id("beta-request")),
            ("trial", None),
            ("trial", {}),
            ("trial", {"channel_id": None}),
            ("trial", {"channel_id": 7}),
            ("trial", {"channel_id": "another channel"}),
        )
    )
    evidence[field] = value


def drop_field(evidence: Evidence, pick: Pick) -> None:
    evidence.pop(pick(sorted(evidence)))
    for field in ("messages", "directory"):
        # What other operators of a chain look at stays there, if empty.
        evidence.setdefault(field, [])
    evidence.setdefault("identities", {})


def drop_message_field(evidence: Evidence, pick: Pick) -> None:
    message = pick(evidence["messages"])
    field = pick(sorted(message))
    empty: Any = {"content": "", "tags": []}.get(field)
    message[field] = empty


def change_identity(evidence: Evidence, pick: Pick) -> None:
    identities = evidence["identities"]
    name = pick(sorted(identities))
    act = pick(("drop", "rename", "no key", "other role", "no role", "second", "stranger"))
    if act == "drop":
        del identities[name]
    elif act == "rename":
        identities[f"{name}s"] = identities.pop(name)
    elif act == "second":
        identities["second"] = {"role": identities[name].get("role"), "pubkey": STRANGER}
    elif act == "other role":
        identities[name]["role"] = pick(("user", "orchestrator", "worker"))
    elif act == "no role":
        identities[name].pop("role", None)
    else:
        identities[name]["pubkey"] = STRANGER if act == "stranger" else None


def change_directory(evidence: Evidence, pick: Pick) -> None:
    rows = evidence["directory"]
    place = pick(sample(range(len(rows)), 6, 18, 41, 52, 57))
    act = pick(("drop", "double", "namesake", "no key", "stranger", "user's", "rename", "role"))
    row = rows[place]
    if act == "drop":
        rows.pop(place)
    elif act == "double":
        rows.append(dict(row))
    elif act == "namesake":
        rows.append({**row, "pubkey": STRANGER})
    elif act == "no key":
        row["pubkey"] = None
    elif act == "stranger":
        row["pubkey"] = STRANGER
    elif act == "user's":
        row["pubkey"] = pick(rows)["pubkey"] if len(rows) < 5 else key_of("user")
    elif act == "rename":
        field = pick(("name", "identity_id"))
        row[field] = pick((f"{row[field]}s", rows[0][field], None))
    else:
        row["role"] = pick(("user", "bot", None))


def change_script(evidence: Evidence, pick: Pick) -> None:
    rows = evidence.get("scripted_events") or []
    place = pick(range(len(rows)))
    act = pick(("drop", "double", "other", "same", "no id", "relabel", "root"))
    row = rows[place]
    if act == "drop":
        rows.pop(place)
    elif act == "double":
        rows.append(dict(row))
    elif act == "other":
        rows.append({**row, "event_id": event_id("nothing")})
    elif act == "same":
        row["event_id"] = rows[0]["event_id"]
    elif act == "relabel":
        row["label"] = pick(("another-label", None))
    else:
        row["event_id"] = None if act == "no id" else evidence.get("task_event_id")


def change_channel(evidence: Evidence, pick: Pick) -> None:
    channels = evidence.get("observed_channels") or []
    channel = pick(channels)
    act = pick(("drop", "double", "field"))
    if act == "drop":
        channels.remove(channel)
        return
    if act == "double":
        channels.append(copy.deepcopy(channel))
        return
    changes: Sequence[tuple[str, object]] = (
        ("name", "fix-pr-12345"),
        ("name", "Fix-PR-1234"),
        ("name", None),
        ("channel_type", "forum"),
        ("visibility", "public"),
        ("archived", True),
        ("archived", 0),
        ("archived", None),
        ("ttl_seconds", 3600.0),
        ("ttl_seconds", 3601),
        ("ttl_seconds", "3600"),
        ("ttl_seconds", None),
        ("members", None),
        ("members", []),
    )
    field, value = pick(changes)
    channel[field] = value


def change_member(evidence: Evidence, pick: Pick) -> None:
    channel = pick(evidence.get("observed_channels") or [])
    members = channel.get("members") or []
    act = pick(("add", "drop", "double", "role", "key", "double role"))
    if act == "add":
        members.append({"pubkey": pick((STRANGER, key_of("benchmark-user-01"))), "role": "member"})
        return
    row = pick(members)
    if act == "drop":
        members.remove(row)
    elif act == "double":
        members.append(dict(row))
    elif act == "double role":
        members.insert(pick((0, len(members))), {**row, "role": "admin"})
    elif act == "role":
        row["role"] = pick(("owner", "admin", "member", "bot", None))
    else:
        row["pubkey"] = pick((STRANGER, None))


OPERATORS: tuple[Operator, ...] = (
    drop_message,
    duplicate_message,
    move_message,
    reverse_messages,
    reauthor_message,
    add_message,
    remove_tag,
    remove_tag_only,
    forge_tag,
    forge_derived,
    move_tag_into_text,
    write_mention,
    change_number,
    change_text,
    drop_word,
    change_head,
    drop_field,
    drop_message_field,
    change_identity,
    change_directory,
    change_script,
    change_channel,
    change_member,
)
FULL_WIDTH = str.maketrans("0123456789", "０１２３４５６７８９")
ARABIC = str.maketrans("0123456789", "٠١٢٣٤٥٦٧٨٩")


def every_mutant(evidence: Evidence) -> Iterator[tuple[str, Evidence]]:
    """Each operator with each of its choices, once."""
    for operator in OPERATORS:
        path: list[int] = []
        while True:
            widths: list[int] = []

            def choose(
                choices: Sequence[Any], path: list[int] = path, widths: list[int] = widths
            ) -> Any:
                depth = len(widths)
                if depth == len(path):
                    path.append(0)
                widths.append(len(choices))
                return choices[path[depth]]

            mutant = copy.deepcopy(evidence)
            try:
                operator(mutant, Pick(choose))
            except NotApplicableError:
                pass
            else:
                yield f"{operator.__name__}{path}", mutant
            while path and path[-1] + 1 == widths[len(path) - 1]:
                path.pop()
            if not path:
                break
            path[-1] += 1


def agent_messages(evidence: Evidence) -> list[Message]:
    """The messages that were the orchestrator's before anything was changed."""
    return [message for message in evidence["messages"] if message["pubkey"] == key_of(AGENT)]


def texts(evidence: Evidence) -> list[str]:
    """What the agent said."""
    return [message["content"] for message in agent_messages(evidence)]


def known_keys(evidence: Evidence) -> list[str]:
    """The user's and the agent's keys, then some of the directory's."""
    rows = [*evidence["identities"].values(), *sample(evidence["directory"], 6, 52)]
    return [row["pubkey"] for row in rows if row["pubkey"] is not None]


def sample(found: Sequence[Choice], *places: int) -> Sequence[Choice]:
    """All of a short sequence, some places of a long one."""
    return found if len(found) < 5 else [found[place] for place in places if place < len(found)]
