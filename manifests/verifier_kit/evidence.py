"""Evidence, schema version 1, in the words of the verifiers: agent, final, replies, mentions.

Two kinds of flaw are kept apart. A part of the wrong shape (a list that is no list, a row that is
no object, a text that is no text) makes the whole evidence malformed. A part that is absent or
null is only absent: the rules that name it fail, the others keep their truth.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from verifier_kit.reading import MalformedError

MAX_ROWS = 100_000
"""In one list; an honest message takes 600 bytes, so the file's own bound comes first."""
MAX_TEXT = 1_000_000
"""Characters of one message; twice what fits a relay's largest frame."""

Row = dict[str, Any]
Found = TypeVar("Found")


@dataclass(frozen=True)
class Message:
    """A message of the trial's channel."""

    row: Row
    text: str
    tags: list[Any]
    mentioned: list[Any]
    """Keys, as derived from all ``p`` tags."""

    @property
    def id(self) -> object:
        """Its event id."""
        return self.row.get("id")

    def replies_to(self, event_id: object) -> bool:
        """Plain equality with what it replies to, null included."""
        return bool(self.row.get("reply_to_event_id") == event_id)

    def mentions(self, key: str | None) -> bool:
        """Whether a key is notified; what the text says is no notification."""
        return key is not None and key in self.mentioned

    def has_tag(self, tag: list[Any]) -> bool:
        """Whether a tag stands there, equal element for element."""
        return tag in self.tags

    def has_tag_beginning(self, start: list[Any]) -> bool:
        """Whether some tag begins with these elements."""
        return any(tag[: len(start)] == start for tag in self.tags)

    def stands_in(self, channel_id: object) -> bool:
        """Plain equality with the channel it was read in."""
        return bool(self.row.get("channel_id") == channel_id)


class Evidence:
    """A document as evidence, and what else a verifier was given.

    Args:
        document: what the file held.
        inputs: what was made of the verifier's other files, by option name.

    Raises:
        MalformedError: a part has the wrong shape.
    """

    def __init__(self, document: object, inputs: Mapping[str, Any] | None = None) -> None:
        if not isinstance(document, dict):
            raise MalformedError("evidence is not an object")
        self.document: Row = document
        self.inputs = dict(inputs or {})
        self.task_event_id: object = document.get("task_event_id")
        self.channel_id: object = _object(document, "trial").get("channel_id")
        self.identities: dict[str, Row] = _object(document, "identities")
        if not all(isinstance(identity, dict) for identity in self.identities.values()):
            raise MalformedError("identities: an entry is not an object")
        self.directory = rows(document, "directory")
        self.scripted_events = rows(document, "scripted_events")
        self.observed_channels = rows(document, "observed_channels")
        self.messages = [_message(row) for row in rows(document, "messages")]
        self.agent = self._agent()
        """The agent's key; null without exactly one orchestrator that has one."""
        self.agent_messages = self._by_agent(self.messages)
        self.final: Message | None = last(self.agent_messages)
        """The agent's last message, wherever it stands."""
        self.final_after_task: Message | None = last(self._by_agent(self._after_task()))
        """The agent's last message after the task event; at all if that event is not unique."""

    @property
    def orchestrators(self) -> list[Row]:
        """The identities with that role."""
        return self.with_role("orchestrator")

    def with_role(self, role: str) -> list[Row]:
        """The identities with a role."""
        return [row for row in self.identities.values() if row.get("role") == role]

    def _agent(self) -> str | None:
        found = self.orchestrators
        return key_of(found[0]) if len(found) == 1 else None

    def _by_agent(self, messages: list[Message]) -> list[Message]:
        if self.agent is None:
            return []
        return [message for message in messages if message.row.get("pubkey") == self.agent]

    def _after_task(self) -> list[Message]:
        ids = [message.id for message in self.messages]
        if ids.count(self.task_event_id) != 1:
            return self.messages
        return self.messages[ids.index(self.task_event_id) + 1 :]

    def named_key(self, name: str) -> str | None:
        """The key of the identity with a display name."""
        return key_of(self.identities.get(name, {}))

    def directory_keys(self, field: str = "name") -> dict[str, str | None]:
        """The directory's keys by name or identity id; of equal ones the last row counts."""
        return {
            row[field]: key_of(row) for row in self.directory if isinstance(row.get(field), str)
        }

    def scripted_id(self, label: str) -> object:
        """The event id of the scripted row with a label; null without one, else the last row's."""
        row = last(self.scripted_rows(label))
        return row.get("event_id") if row else None

    def scripted_rows(self, label: str) -> list[Row]:
        """The scripted rows with a label."""
        return [row for row in self.scripted_events if row.get("label") == label]

    def is_complete(self, task_name: str | None, *, look_at_truncated: bool = True) -> bool:
        """What every task asks of its evidence.

        Args:
            task_name: the bare name that it must carry; None where it is not looked at.
            look_at_truncated: false where that flag is not looked at.
        """
        return (
            self.document.get("schema_version") == 1
            and len(self.orchestrators) == 1
            and (task_name is None or self.document.get("task_name") == task_name)
            and (not look_at_truncated or self.document.get("truncated") is False)
        )

    @property
    def names_task_event(self) -> bool:
        """Whether the task event's id is a string."""
        return isinstance(self.task_event_id, str)

    @property
    def has_task_event_once(self) -> bool:
        """Whether the task event's id is a string and present exactly once."""
        ids = [message.id for message in self.messages]
        return self.names_task_event and ids.count(self.task_event_id) == 1

    @property
    def names_channel(self) -> bool:
        """Whether the trial's channel id is a string."""
        return isinstance(self.channel_id, str)

    def leaves_asleep(self, names: tuple[str, ...]) -> bool:
        """Whether no agent message wakes any of these members of the directory.

        Their keys must be known and different; neither a mention nor a written-out ``@`` and full
        name may stand in any message, code spans included.
        """
        directory = self.directory_keys()
        keys = [directory.get(name) for name in names]
        if None in keys or len(set(keys)) != len(keys):
            return False
        return not any(
            message.mentions(key) or f"@{name}" in message.text
            for message in self.agent_messages
            for name, key in zip(names, keys)
        )


def rows(holder: Row, field: str) -> list[Row]:
    """A list of objects; absent and null are an empty one.

    Raises:
        MalformedError: anything else, or too many rows.
    """
    found = _list(holder, field)
    if len(found) > MAX_ROWS:
        raise MalformedError(f"{field}: more than {MAX_ROWS} rows")
    if not all(isinstance(row, dict) for row in found):
        raise MalformedError(f"{field}: a row is not an object")
    return found


def key_of(row: Row) -> str | None:
    """A row's public key; null if it is no text."""
    key = row.get("pubkey")
    return key if isinstance(key, str) else None


def last(found: list[Found]) -> Found | None:
    """The last of a list, or None."""
    return found[-1] if found else None


def _list(holder: Row, field: str) -> list[Any]:
    found = holder.get(field)
    if found is None:
        return []
    if not isinstance(found, list):
        raise MalformedError(f"{field} is not a list")
    return found


def _object(holder: Row, field: str) -> Row:
    found = holder.get(field)
    if found is None:
        return {}
    if not isinstance(found, dict) or len(found) > MAX_ROWS:
        raise MalformedError(f"{field} is not an object of at most {MAX_ROWS} entries")
    return found


def _message(row: Row) -> Message:
    text = row.get("content")
    if text is None:
        text = ""
    if not isinstance(text, str) or len(text) > MAX_TEXT:
        raise MalformedError(f"messages: a content is not a text of at most {MAX_TEXT} characters")
    tags = _list(row, "tags")
    if not all(isinstance(tag, list) for tag in tags):
        raise MalformedError("messages: a tag is not a list")
    return Message(row, text, tags, _list(row, "mentioned_pubkeys"))
