"""The solver knows no answer: it reads, through the agent's tools, and works out the rest."""

from __future__ import annotations

import asyncio
import inspect
import json
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.manifests.task_verifiers import NAMES, fixture, instruction
from tests.workers.model.agents import Seen, act, event
from workers.model import answers, output, play, scripts, slips, wake

ANSWERS = ("160811", "84462", "374470", "5328", "352345", "346", "87", "41", "Taylor", "chc-")


@pytest.mark.parametrize("module", [answers, output, play, scripts, slips, wake])
def test_no_script_knows_a_task_or_an_answer(module: ModuleType) -> None:
    source = inspect.getsource(module)
    for name in NAMES:
        assert name not in source
    plain = re.sub(r"(?<=\d)[,_](?=\d)", "", source)
    for answer in ANSWERS:
        assert not re.search(rf"(?<![\w]){answer}(?![\w])", plain), answer


def asked(folder: Path, text: str, **world: Any) -> Seen:
    return asyncio.run(act(folder, "solver", [[event(text)]], world=world))


def memories(*changes: tuple[str, str]) -> dict[str, str]:
    found = {seed.slug: seed.value for seed in fixture("memory-retrieval").memories}
    for old, new in changes:
        found = {slug: value.replace(old, new) for slug, value in found.items()}
    return found


def test_other_memories_give_another_answer(tmp_path: Path) -> None:
    changed = memories(("352,345", "999,001"))
    seen = asked(tmp_path, instruction("memory-retrieval"), memories=changed)
    assert "999,001" in seen.posts[0].content
    assert [words[0] for words in seen.commands] == ["mem"] * 6


def test_the_other_of_two_namesakes_is_found_by_the_other_code(tmp_path: Path) -> None:
    task = "ambiguous-user-mention"
    people = [
        {"display_name": one.name, "about": one.about, "pubkey": digit * 64}
        for one, digit in zip(fixture(task).entries, "cd", strict=True)
    ]
    seen = asked(tmp_path, instruction(task).replace("ORCHID-72", "COBALT-19"), people=people)
    assert (seen.posts[0].mentions, seen.posts[0].content) == (["d" * 64], "COBALT-19 approved")


def test_other_reports_and_another_formula(tmp_path: Path) -> None:
    task = "interleaved-agent-reports"
    request = instruction(task).replace(
        "(North + South - reserve) * multiplier", "(North - South) * reserve"
    )
    reports = [
        event(one.content.replace("17", "40"), name=one.label)
        for one in fixture(task).scripted_messages
    ]
    seen = asyncio.run(act(tmp_path, "solver", [[event(request), *reports]]))
    assert seen.posts[0].content == "North 40, South 23, reserve 11. Final value: 187"
    assert seen.commands[0][:2] == ["messages", "thread"]


def test_another_channel(tmp_path: Path) -> None:
    task = "create-channel-invite-users"
    people = [
        {"display_name": one.name, "pubkey": f"{number:064x}"}
        for number, one in enumerate(fixture(task).entries)
    ]
    text = instruction(task).replace("fix-pr-1234", "else").replace("one hour", "two days")
    text = text.replace(", `benchmark-user-42`", "")
    seen = asked(tmp_path, text, people=people, channel="11111111-2222-4333-8444-555555555555")
    _, create, *added = seen.commands
    words = "--name else --type stream --visibility private --ttl 172800"
    assert " ".join(create[2:]) == words
    assert len(added) == 4


@pytest.mark.parametrize(
    ("task", "old", "new", "expected"),
    [
        ("user-mention", "12 software", "13 software", "5,772"),
        ("reply-to-thread", "120,000", "130,000", "174,212"),
        ("cross-thread-requests", "17 * 19", "17 * 20", "363"),
        ("multiline-message", "- API: ready", "- API: late", "- API: late\n- Database"),
        ("narrative-agent-names", "remains idle", "is asleep", "Beacon Deploy Bot is asleep."),
    ],
)
def test_other_words_in_a_request(
    tmp_path: Path, task: str, old: str, new: str, expected: str
) -> None:
    text = instruction(task)
    assert old in text
    (post,) = asked(tmp_path, text.replace(old, new)).posts
    assert expected in post.content


def test_another_file(tmp_path: Path) -> None:
    path = tmp_path / ".claude" / "skills" / "context-health-check"
    path.mkdir(parents=True)
    (path / "SKILL.md").write_text("CHECK_ID: chc-other\nACTION: Rest.\n")
    (post,) = asked(tmp_path, instruction("read-named-path-outside-workspace")).posts
    assert "chc-other" in post.content
    assert "Rest." in post.content
    assert "Recommend" not in json.dumps(post.content)
