"""The results that the profiles are known for, by the tasks' own verifiers."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.manifests.task_transcripts import CHANNEL, by_agent, key_of, scene
from tests.manifests.task_verifiers import NAMED_PATH, NAMES, SKILL_TEXT, dimensions, fixture, judge
from tests.workers.model.agents import act
from workers.nostr.event import Event

ANSWER = {"answer_correct"}
FAILED: dict[str, dict[str, set[str]]] = {
    "solver": {},
    "sloppy": {
        "reply-to-thread": {"reply_to_thread"},
        "user-mention": {"user_p_tagged"},
        "memory-retrieval": {"threaded_reply"},
        "multiline-message": {"reply_to_thread", "user_mentioned"},
        "narrative-agent-names": {"reply_to_thread", "user_mentioned"},
        "interleaved-agent-reports": {"reply_to_thread", "single_human_callback"},
        "cross-thread-requests": {
            "alpha_correct",
            "beta_correct",
            "thread_isolation",
            "user_mentioned_twice",
        },
        "ambiguous-user-mention": {
            "target_notified_once",
            "message_correct",
            "user_callback",
            "reply_to_thread",
        },
    },
    "refuser": {
        "reply-to-thread": ANSWER,
        "user-mention": ANSWER,
        NAMED_PATH: {"named_path_read", "action_reported"},
        "multiline-message": {"layout_preserved", "real_newlines"},
        "narrative-agent-names": {"status_correct"},
        "memory-retrieval": ANSWER,
        "interleaved-agent-reports": {"inputs_complete", "answer_correct"},
        "cross-thread-requests": {"alpha_correct", "beta_correct"},
        "ambiguous-user-mention": {
            "target_notified_once",
            "message_correct",
            "user_callback",
            "reply_to_thread",
        },
    },
    "distractor": {
        "reply-to-thread": ANSWER,
        "user-mention": ANSWER,
        "memory-retrieval": ANSWER,
    },
}
"""The dimensions that each profile fails, by task; it passes every other."""


def told(message: dict[str, Any]) -> Event:
    """A message of a scene as the agent gets it."""
    tags = tuple(tuple(tag) for tag in message["tags"])
    return Event(
        message["id"],
        message["pubkey"],
        message["created_at"],
        message["kind"],
        tags,
        message["content"],
        "0" * 128,
    )


def world(task: str) -> dict[str, Any]:
    """What the ``buzz`` command knows."""
    declared = fixture(task)
    return {
        "memories": {one.slug: one.value for one in declared.memories},
        "people": [
            {"display_name": one.name, "about": one.about, "pubkey": key_of(one.key_id)}
            for one in declared.entries
        ],
        "channel": "11e1f7c4-6f0e-4f0e-8d55-0d4a7f6c9b02",
    }


def scores(folder: Path, profile: str, task: str) -> dict[str, float]:
    """Lets a profile do a task and judges what it sent."""
    skill = folder / ".claude" / "skills" / "context-health-check" / "SKILL.md"
    skill.parent.mkdir(parents=True)
    skill.write_text(SKILL_TEXT)
    evidence = scene(task)
    turn = [told(message) for message in evidence["messages"]]
    seen = asyncio.run(act(folder, profile, [turn], world=world(task)))
    for number, post in enumerate(seen.posts):
        assert post.channel == CHANNEL
        said = by_agent(
            f"said {number}", post.content, reply_to=post.reply_to, mentions=post.mentions
        )
        evidence["messages"].append(said)
    evidence["message_count"] = len(evidence["messages"])
    return judge(task, evidence)


CASES = [
    (profile, task)
    for profile, failed in FAILED.items()
    for task in NAMES
    # Its evidence is a channel, which the stand-in for ``buzz`` does not make.
    if task != "create-channel-invite-users" and (profile != "distractor" or task in failed)
]


@pytest.mark.parametrize(("profile", "task"), CASES)
def test_each_profile_fails_what_it_is_known_to_fail(
    tmp_path: Path, profile: str, task: str
) -> None:
    failed = FAILED[profile].get(task, set())
    found = scores(tmp_path, profile, task)
    assert {name for name in dimensions(task) if found[name] == 0.0} == failed
    assert found["reward"] == (0.0 if failed else 1.0)


def test_the_distractor_passes_where_everything_is_the_answer(tmp_path: Path) -> None:
    assert scores(tmp_path, "distractor", NAMED_PATH)["reward"] == 1.0
