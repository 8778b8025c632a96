"""The results that the profiles are known for, by the tasks' own verifiers."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.manifests.task_transcripts import AGENT, CHANNEL, by_agent, key_of, scene, user_name
from tests.manifests.task_verifiers import NAMES, SKILL_TEXT, dimensions, fixture, judge
from tests.workers.model.agents import Seen, act
from workers.model import MISTAKES, PROFILES
from workers.nostr.event import Event

pytestmark = pytest.mark.long

MADE = "11e1f7c4-6f0e-4f0e-8d55-0d4a7f6c9b02"


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
    user = user_name(task)
    people = [
        {"display_name": one.name, "about": one.about, "pubkey": key_of(one.key_id)}
        for one in declared.entries
    ]
    return {
        "memories": {one.slug: one.value for one in declared.memories},
        "people": [*people, {"display_name": user, "about": "", "pubkey": key_of(user)}],
        "channel": MADE,
    }


def made_channels(seen: Seen) -> Iterator[dict[str, Any]]:
    """The channels that an agent made, as they are observed afterwards."""
    for words in seen.commands:
        if words[:2] == ["channels", "create"]:
            made = dict(zip(words[2::2], words[3::2], strict=True))
            members = [{"pubkey": key_of(AGENT), "role": "owner"}]
            for add in seen.commands:
                if add[:2] == ["channels", "add-member"]:
                    added = dict(zip(add[2::2], add[3::2], strict=True))
                    assert added["--channel"] == MADE
                    members.append({"pubkey": added["--pubkey"], "role": added["--role"]})
            yield {
                "channel_id": MADE,
                "name": made["--name"],
                "channel_type": made["--type"],
                "visibility": made["--visibility"],
                "ttl_seconds": int(made["--ttl"]),
                "archived": False,
                "members": members,
            }


def scores(folder: Path, profile: str, task: str) -> dict[str, float]:
    """Lets a profile do a task and judges what it did."""
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
    evidence["observed_channels"] = list(made_channels(seen))
    return judge(task, evidence)


CASES = [
    *(("solver", task, frozenset()) for task in NAMES),
    *((name, task, lost) for name in PROFILES for task, lost in PROFILES[name].loses.items()),
]


@pytest.mark.parametrize(
    ("profile", "task", "lost"), CASES, ids=[f"{case[0]}: {case[1]}" for case in CASES]
)
def test_each_profile_loses_what_it_is_known_to_lose(
    tmp_path: Path, profile: str, task: str, lost: frozenset[str]
) -> None:
    found = scores(tmp_path, profile, task)
    assert {name for name in dimensions(task) if found[name] == 0.0} == lost
    assert found["reward"] == (0.0 if lost else 1.0)


def test_each_task_has_a_mistake_of_its_own() -> None:
    """Beside the profiles that go wrong everywhere."""
    lost = {
        task
        for name, profile in MISTAKES.items()
        if name not in ("sloppy", "distractor")
        for task, dimensions in profile.loses.items()
        if dimensions
    }
    assert lost | {"memory-retrieval"} == set(NAMES)
    assert MISTAKES["distractor"].loses["memory-retrieval"] == {"answer_correct"}


def test_declarations_name_what_there_is() -> None:
    for name, profile in PROFILES.items():
        for task, lost in profile.loses.items():
            assert task in NAMES, name
            assert lost <= set(dimensions(task)), (name, task)


def test_the_silent_one_does_nothing(tmp_path: Path) -> None:
    turn = [told(message) for message in scene("user-mention")["messages"]]
    seen = asyncio.run(act(tmp_path, "silent", [turn], world=world("user-mention")))
    assert (seen.posts, seen.commands, seen.calls) == ([], [], 1)
