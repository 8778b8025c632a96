"""How evidence is made of a transcript; that it is the harness's is shown by the verifiers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from scheduler.dataset.proof import Transcript
from scheduler.dataset.transcript import AGENT, event_id, evidence_of, key_of, merged
from tests.scheduler.dataset.builders import make_task, read_task
from workers.contract import evidence as contract
from workers.contract.task import Task

SCRIPTED = """\
directory:
  - {name: Scout, identity_id: scout-1, role: bot, channel_member: true}
scripted_messages:
  - {label: report, actor: scout-1, content: "@{orchestrator} for {user}", reply_to_task: true}
  - {label: aside, actor: user, content: Hm., mention_orchestrator: false}
"""


def task(tmp_path: Path) -> Task:
    folder = make_task(tmp_path)
    with (folder / "fixture.yaml").open("a") as stream:
        stream.write(SCRIPTED)
    return read_task(folder)


def made(tmp_path: Path, **transcript: Any) -> dict[str, Any]:
    told = json.dumps({"name": "it", **transcript})
    evidence = evidence_of(task(tmp_path), Transcript.from_json(told, "it"))
    contract.Evidence.from_json(json.dumps(evidence), "made")
    return evidence


def test_a_silent_trial(tmp_path: Path) -> None:
    evidence = made(tmp_path)
    root, report, aside = evidence["messages"]
    assert root["content"].startswith(f"@{AGENT} GAMMA request")
    assert evidence["task_event_id"] == root["id"]
    assert (report["author"], report["author_role"]) == ("Scout", "bot")
    assert report["content"] == f"@{AGENT} for Grace Ada Hill"
    assert report["reply_to_event_id"] == root["id"]
    assert report["mentioned_pubkeys"] == [key_of(AGENT)]
    assert (aside["pubkey"], aside["mentioned_pubkeys"]) == (root["pubkey"], [])
    assert [row["event_id"] for row in evidence["scripted_events"]] == [report["id"], aside["id"]]
    assert evidence["completion_message_id"] is None


def test_what_the_agent_says(tmp_path: Path) -> None:
    evidence = made(
        tmp_path,
        says=[
            {"text": "one", "reply_to": "report", "mentions": ["scout-1", "user"]},
            {"text": "two", "label": "second", "reply_to": "said 1"},
            {"text": "three", "reply_to": "nobody's", "mentions": ["agent"]},
        ],
    )
    first, second, third = evidence["messages"][-3:]
    assert {each["pubkey"] for each in (first, second, third)} == {key_of(AGENT)}
    assert first["reply_to_event_id"] == evidence["scripted_events"][0]["event_id"]
    assert first["mentioned_pubkeys"] == [key_of("scout-1"), key_of("Grace Ada Hill")]
    assert (second["id"], second["reply_to_event_id"]) == (event_id("second"), first["id"])
    assert third["reply_to_event_id"] not in {each["id"] for each in evidence["messages"]}
    assert third["mentioned_pubkeys"] == [key_of(AGENT)]
    assert evidence["completion_message_id"] == third["id"]
    assert evidence["message_count"] == 6


def test_channels(tmp_path: Path) -> None:
    members = {"agent": "owner", "scout-1": "bot", "user": "member"}
    (channel,) = made(tmp_path, channels=[{"name": "c", "members": members}])["observed_channels"]
    assert (channel["channel_type"], channel["ttl_seconds"], channel["archived"]) == (
        "stream",
        None,
        False,
    )
    assert channel["members"] == [
        {"pubkey": key_of(AGENT), "role": "owner"},
        {"pubkey": key_of("scout-1"), "role": "bot"},
        {"pubkey": key_of("Grace Ada Hill"), "role": "member"},
    ]


def test_a_merge_patch_is_laid_over() -> None:
    document = {"a": {"b": 1, "c": [1, 2]}, "d": 4}
    assert merged(document, {"a": {"b": None, "c": [3]}, "e": {"f": None, "g": 5}}) == {
        "a": {"c": [3]},
        "d": 4,
        "e": {"g": 5},
    }
    assert document == {"a": {"b": 1, "c": [1, 2]}, "d": 4}
    assert merged(document, {"d": {"x": 1}})["d"] == {"x": 1}
