"""Evidence is judged by the harness before a verifier sees it."""

from __future__ import annotations

import pytest

from tests.workers.trial.builders import (
    AGENT,
    REPLY_EVENT,
    TASK_EVENT,
    USER,
    evidence,
    message,
)
from workers.contract.evidence import Evidence, Identity
from workers.contract.task import DirectoryEntry, Fixture, ScriptedMessage
from workers.trial.soundness import unsound_because

FIXTURE = Fixture(
    directory=(DirectoryEntry(name="Bot", identity_id="bot", role="bot"),),
    scripted_messages=(ScriptedMessage(label="report", actor="bot", content="text"),),
)
TASK = message(TASK_EVENT, USER, ("p", AGENT))


def test_sound_evidence_has_no_fault() -> None:
    assert unsound_because(evidence(), "user-mention", FIXTURE) == ""


def test_an_agent_that_said_nothing_is_sound() -> None:
    assert unsound_because(evidence(TASK), "user-mention", FIXTURE) == ""


@pytest.mark.parametrize(
    ("record", "fault"),
    [
        (evidence(message_count=3), "message_count"),
        (evidence(TASK, TASK), "more than once"),
        (evidence(task_name="other"), "task_name"),
        (evidence(task_event_id=None), "task message"),
        (evidence(message(REPLY_EVENT, AGENT)), "task message"),
        (evidence(truncated=True), "more messages"),
        (evidence(identities={"u": Identity(role="user", pubkey=USER)}), "0 orchestrators"),
        (
            evidence(
                identities={
                    "a": Identity(role="orchestrator", pubkey=AGENT),
                    "b": Identity(role="orchestrator", pubkey=USER),
                }
            ),
            "2 orchestrators",
        ),
        (
            evidence(TASK, message(REPLY_EVENT, AGENT, reply_to_event_id=TASK_EVENT)),
            "reply_to_event_id differs",
        ),
        (
            evidence(TASK, message(REPLY_EVENT, AGENT, mentioned_pubkeys=(USER,))),
            "mentioned_pubkeys differ",
        ),
        (evidence(TASK, message(REPLY_EVENT, AGENT, channel_id="other")), "channel_id differs"),
        (
            evidence(TASK, message(REPLY_EVENT, AGENT, tags=(("h", "other"),), channel_id="other")),
            "another channel",
        ),
        (evidence(directory=()), "directory lacks 'bot'"),
        (evidence(scripted_events=()), "'report' is not in the channel"),
    ],
)
def test_each_fault_is_named(record: Evidence, fault: str) -> None:
    assert fault in unsound_because(record, "user-mention", FIXTURE)
