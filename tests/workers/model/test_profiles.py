"""How profiles go about their tasks; what comes of it is in ``test_known_results``."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.workers.model.agents import CHANNEL, TASKS, USER, Seen, act, event, instruction
from workers.model.profiles import PROFILES, REFUSAL, profile_of

TASK = event("").id
SKILL = """# Context Health Check

CHECK_ID: chc-0123456789abcdef01234567
ACTION: Recommend it's $so.
"""


def fixture(task: str) -> dict[str, Any]:
    data: dict[str, Any] = yaml.safe_load((TASKS / task / "fixture.yaml").read_text())
    return data


def memories() -> dict[str, Any]:
    return {"memories": {one["slug"]: one["value"] for one in fixture(MEMORY)["memories"]}}


MEMORY = "memory-retrieval"
NAMED_PATH = "read-named-path-outside-workspace"


def run(folder: Path, profile: str, task: str, **more: Any) -> Seen:
    """One turn with the task's instruction."""
    return asyncio.run(act(folder, profile, [[event(instruction(task))]], **more))


def put_skill(folder: Path) -> None:
    path = folder / ".claude" / "skills" / "context-health-check"
    path.mkdir(parents=True)
    (path / "SKILL.md").write_text(SKILL)


def test_solver_reply_to_thread(tmp_path: Path) -> None:
    seen = run(tmp_path, "solver", "reply-to-thread")
    (post,) = seen.posts
    assert (post.channel, post.reply_to, post.mentions) == (CHANNEL, TASK, [USER])
    revenue, expenses, profit = post.content.lower().splitlines()
    assert "revenue" in revenue and "160,811" in revenue
    assert "expense" in expenses and "84,462" in expenses
    assert "profit" in profit and "374,470" in profit
    assert (seen.calls, seen.said) == (2, ["The answer was sent."])


def test_solver_user_mention(tmp_path: Path) -> None:
    seen = run(tmp_path, "solver", "user-mention")
    (post,) = seen.posts
    assert (post.reply_to, post.mentions) == (TASK, [USER])
    assert re.findall(r"[\d,]*\d", post.content) == ["5,328"]
    assert seen.calls == 2


@pytest.mark.parametrize("profile", ["solver", "sloppy"])
def test_right_answers_from_memory(tmp_path: Path, profile: str) -> None:
    seen = run(tmp_path, profile, MEMORY, world=memories())
    (post,) = seen.posts
    is_proper = profile == "solver"
    assert (post.reply_to, post.mentions) == ((TASK, [USER]) if is_proper else (None, []))
    assert re.findall(r"\d[\d,]*", post.content) == ["352,345", "2024"]
    assert [words[:2] for words in seen.commands].count(["mem", "get"]) == 5
    assert seen.calls == 4


def test_right_answers_from_a_named_path(tmp_path: Path) -> None:
    put_skill(tmp_path)
    seen = run(tmp_path, "solver", NAMED_PATH)
    (post,) = seen.posts
    assert "chc-0123456789abcdef01234567" in post.content
    assert "Recommend it's $so" in post.content
    assert seen.calls == 3


@pytest.mark.parametrize("task", ["reply-to-thread", "user-mention"])
def test_sloppy_has_the_answer_but_not_the_place(tmp_path: Path, task: str) -> None:
    for profile in ("solver", "sloppy"):
        (tmp_path / profile).mkdir()
    (right,) = run(tmp_path / "solver", "solver", task).posts
    (post,) = run(tmp_path / "sloppy", "sloppy", task).posts
    assert (post.reply_to, post.mentions, post.content) == (None, [], right.content)


def test_refuser_replies_properly_and_does_nothing(tmp_path: Path) -> None:
    seen = run(tmp_path, "refuser", MEMORY, world=memories())
    (post,) = seen.posts
    assert (post.channel, post.reply_to, post.mentions) == (CHANNEL, TASK, [USER])
    assert post.content == REFUSAL
    assert seen.commands == []
    assert not re.search(r"\d|sent|notified|delivered|@", REFUSAL)


def test_distractor_dumps_what_it_read(tmp_path: Path) -> None:
    (post,) = run(tmp_path, "distractor", MEMORY, world=memories()).posts
    assert (post.reply_to, post.mentions) == (TASK, [USER])
    for figure in ("352,345", "361,250", "351,340", "325,401", "21,604"):
        assert figure in post.content


def test_distractor_has_no_answer_where_nothing_is_read(tmp_path: Path) -> None:
    (post,) = run(tmp_path, "distractor", "user-mention").posts
    assert "5,328" not in post.content
    assert "12 software licenses" in post.content


def test_solver_create_channel(tmp_path: Path) -> None:
    task = "create-channel-invite-users"
    names = [f"benchmark-user-{n:02}" for n in range(1, 51)]
    names += [f"benchmark-bot-{n:02}" for n in range(1, 11)]
    people = [{"display_name": n, "pubkey": f"{i:064x}"} for i, n in enumerate(names)]
    made = "11111111-2222-4333-8444-555555555555"
    seen = run(tmp_path, "solver", task, world={"people": people, "channel": made})
    get, create, *adds = seen.commands
    assert get == ["users", "get", "--name", "benchmark-"]
    assert " ".join(create) == (
        "channels create --name fix-pr-1234 --type stream --visibility private --ttl 3600"
    )
    roles = {}
    for words in adds:
        assert words[:4] == ["channels", "add-member", "--channel", made]
        roles[names[int(words[5], 16)]] = words[7]
    assert roles == {
        "benchmark-user-07": "member",
        "benchmark-user-19": "member",
        "benchmark-user-42": "member",
        "benchmark-bot-03": "bot",
        "benchmark-bot-08": "bot",
    }
    assert len(seen.posts) == 1


def interleaved() -> list[Any]:
    task = "interleaved-agent-reports"
    reports = [
        event(one["content"].removeprefix("@{orchestrator} "), name=one["label"], sender="cc" * 32)
        for one in fixture(task)["scripted_messages"]
    ]
    return [event(instruction(task)), *reports]


@pytest.mark.parametrize("cut", [[1, 3], [1, 1, 1, 1], [2, 2]])
def test_solver_interleaved_reports_in_any_batches(tmp_path: Path, cut: list[int]) -> None:
    events = iter(interleaved())
    turns = [[next(events) for _ in range(size)] for size in cut]
    seen = asyncio.run(act(tmp_path, "solver", turns))
    (post,) = seen.posts
    assert (post.reply_to, post.mentions) == (TASK, [USER])
    for label, figure in (("North", 17), ("South", 23), ("reserve", 11), ("multiplier", 3)):
        assert re.search(rf"(?i){label}\D+{figure}\b", post.content)
    assert re.search(r"(?i)(?:final|result|forecast|=)\D*87(?:\D|$)", post.content)
    assert len(seen.said) == len(cut)


@pytest.mark.parametrize("dialect", ["chat", "messages"])
def test_solver_cross_thread_requests_in_two_turns(tmp_path: Path, dialect: str) -> None:
    task = "cross-thread-requests"
    (row,) = fixture(task)["scripted_messages"]
    beta = event(row["content"].removeprefix("@{orchestrator} "), name="beta")
    alpha = event(instruction(task))
    seen = asyncio.run(act(tmp_path, "solver", [[alpha], [beta]], dialect=dialect))
    assert [(post.reply_to, post.mentions, post.content) for post in seen.posts] == [
        (alpha.id, [USER], "ALPHA: 346"),
        (beta.id, [USER], "BETA: 41"),
    ]


def test_an_unknown_request_gets_a_reply(tmp_path: Path) -> None:
    (post,) = asyncio.run(act(tmp_path, "solver", [[event("What's $(date) `now`?")]])).posts
    assert (post.reply_to, post.mentions) == (TASK, [USER])


def test_models_select_profiles() -> None:
    assert all(profile_of(f"scripted-{name}") is PROFILES[name] for name in PROFILES)
    assert profile_of("solver") is None
    assert profile_of("scripted-none") is None
