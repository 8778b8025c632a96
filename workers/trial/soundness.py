"""Whether evidence is sound: judged by the harness, before any verifier looks at it.

Where it is sound, a reward of 0 is the model's; where it is not, the try is the harness's. Pure.
"""

from __future__ import annotations

from collections import Counter

from workers.contract.evidence import Evidence, channel_of, mentioned, reply_target
from workers.contract.task import Fixture


def unsound_because(evidence: Evidence, task_name: str, fixture: Fixture | None) -> str:
    """The first fault of the record, or an empty text if it has none."""
    for fault in (
        _messages(evidence),
        _frame(evidence, task_name),
        _fixture(evidence, fixture) if fixture else "",
    ):
        if fault:
            return fault
    return ""


def _messages(evidence: Evidence) -> str:
    if evidence.message_count != len(evidence.messages):
        return f"message_count is {evidence.message_count}, {len(evidence.messages)} messages"
    repeated = [key for key, n in Counter(m.id for m in evidence.messages).items() if n > 1]
    if repeated:
        return f"message {repeated[0]} stands more than once"
    for message in evidence.messages:
        if message.reply_to_event_id != reply_target(message.tags):
            return f"message {message.id}: reply_to_event_id differs from its tags"
        if message.mentioned_pubkeys != mentioned(message.tags):
            return f"message {message.id}: mentioned_pubkeys differ from its tags"
        if message.channel_id != channel_of(message.tags):
            return f"message {message.id}: channel_id differs from its tags"
        if message.channel_id != evidence.trial.channel_id:
            return f"message {message.id} is of another channel"
    return ""


def _frame(evidence: Evidence, task_name: str) -> str:
    if evidence.task_name != task_name:
        return f"task_name is {evidence.task_name!r}, not {task_name!r}"
    ids = [message.id for message in evidence.messages]
    if evidence.task_event_id is None or ids.count(evidence.task_event_id) != 1:
        return "the task message is not in the channel exactly once"
    orchestrators = [i for i in evidence.identities.values() if i.role == "orchestrator"]
    if len(orchestrators) != 1:
        return f"{len(orchestrators)} orchestrators"
    if evidence.truncated:
        return "the channel holds more messages than were read"
    return ""


def _fixture(evidence: Evidence, fixture: Fixture) -> str:
    rows = {row.identity_id for row in evidence.directory}
    for entry in fixture.entries:
        if entry.key_id not in rows:
            return f"the directory lacks {entry.key_id!r}"
    ids = {message.id for message in evidence.messages}
    posted = {event.label: event.event_id for event in evidence.scripted_events}
    for message in fixture.scripted_messages:
        if posted.get(message.label) not in ids:
            return f"scripted message {message.label!r} is not in the channel"
    return ""
