"""The folders: declarations as specified, and one set of names, codes and figures in all files."""

from __future__ import annotations

import ast
import re
import stat
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from scheduler.dataset.agreement import disagreements
from scheduler.dataset.hints import IMPLICIT_TAG, instruction_faults, persona_faults
from scheduler.dataset.lock import make_lock, read_lock
from scheduler.dataset.places import TaskTexts
from scheduler.dataset.proof import PROOFS
from tests.manifests.task_transcripts import accepted, proof, task_of
from tests.manifests.task_verifiers import (
    MANIFESTS,
    NAMED_PATH,
    NAMES,
    TASKS,
    answer,
    config,
    dimensions,
    fixture,
    instruction,
    load,
)
from workers.contract.task import Fixture
from workers.contract.task_folder import digest_of

DECLARED = {
    "reply-to-thread": ("regression", "easy", "messaging, threading"),
    "user-mention": ("regression", "easy", "messaging, mentions"),
    NAMED_PATH: ("regression", "easy", "filesystem, workspace, named-path"),
    "multiline-message": ("regression", "medium", "messaging, multiline, cli"),
    "narrative-agent-names": ("regression", "medium", "mentions, agents, notifications"),
    "memory-retrieval": ("regression", "hard", "agents, memory, retrieval"),
    "create-channel-invite-users": ("workflow", "medium", "channels, membership, cli"),
    "interleaved-agent-reports": ("workflow", "hard", "agents, batching, synthesis"),
    "cross-thread-requests": ("workflow", "hard", "threading, batching, concurrency"),
    "ambiguous-user-mention": ("workflow", "hard", "mentions, identity, ambiguity"),
}
USERS = {
    "user-mention": "John Vincent Doe",
    "multiline-message": "Eleanor June Brooks",
    "narrative-agent-names": "Maya Elise Chen",
    "interleaved-agent-reports": "Nora Isabel Grant",
    "cross-thread-requests": "Priya Simone Patel",
    "ambiguous-user-mention": "Olivia Grace Park",
}
GUARDS = {
    NAMED_PATH: {"6261"},
    "multiline-message": {"5787"},
    "narrative-agent-names": {"5176"},
    "interleaved-agent-reports": {"5839", "4942"},
    "cross-thread-requests": {"5839", "4072"},
    "ambiguous-user-mention": {"4303", "6257"},
}
IMPLICIT = ("reply-to-thread", "user-mention")


def constants(task: str) -> Any:
    return load(task)


def script_texts(told: Fixture) -> dict[str, str]:
    return {message.label: message.content for message in told.scripted_messages}


def test_ten_tasks() -> None:
    assert {path.name for path in TASKS.iterdir()} == {*NAMES, PROOFS}
    assert set(NAMES) == set(DECLARED)
    assert {path.stem for path in (TASKS / PROOFS).iterdir()} == set(NAMES)


def test_the_lock_pins_every_task_as_it_stands() -> None:
    """After a change: `apiary tasks lock`; the task then begins a new series in every trend."""
    kit = MANIFESTS / "verifier_kit"
    digests = {name: digest_of(TASKS / name, kit) for name in NAMES}
    assert read_lock(TASKS) == make_lock(digests, kit)


@pytest.mark.parametrize("task", NAMES)
def test_facts_agree(task: str) -> None:
    assert disagreements(proof(task).facts, TaskTexts(TASKS / task, task_of(task))) == []


@pytest.mark.parametrize("task", NAMES)
def test_every_name_of_the_fixture_is_one_of_the_facts(task: str) -> None:
    texts = TaskTexts(TASKS / task, task_of(task))
    told = {place for fact in proof(task).facts for place in (fact.values, *fact.equal)}
    if texts.values("fixture:user_display_name") != [None]:
        assert "fixture:user_display_name" in told
    for place in ("fixture:entries.name", "fixture:scripted_messages.label"):
        if texts.values(place) and task != "create-channel-invite-users":
            assert place in told


@pytest.mark.parametrize("task", NAMES)
def test_declaration(task: str) -> None:
    layer, difficulty, keywords = DECLARED[task]
    told = config(task)
    assert told.task.name == f"buzz-native/{task}"
    assert told.task.description
    assert told.task.authors
    assert told.task.keywords == ("buzz-native", *keywords.split(", "))
    assert (told.metadata.evaluation_layer, told.metadata.difficulty) == (layer, difficulty)
    assert told.metadata.category == "collaboration"
    assert ("implicit-behavior" in told.metadata.tags) == (task in IMPLICIT)
    raw = tomllib.loads((TASKS / task / "task.toml").read_text("utf-8"))
    assert raw["agent"] == {"timeout_sec": 300.0}
    assert raw["verifier"] == {"timeout_sec": 30.0}
    assert raw["environment"] == {
        "network_mode": "public",
        "cpus": 1,
        "memory_mb": 1024,
        "storage_mb": 1024,
    }


@pytest.mark.parametrize("task", NAMES)
def test_folder_holds_what_it_should_and_no_solution(task: str) -> None:
    folder = TASKS / task
    files = {
        str(path.relative_to(folder))
        for path in folder.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert files == {
        "README.md",
        "environment/Dockerfile",
        "fixture.yaml",
        "instruction.md",
        "task.toml",
        "tests/test.sh",
        "tests/verify.py",
    }
    assert (folder / "tests" / "test.sh").stat().st_mode & stat.S_IXUSR


@pytest.mark.parametrize("task", NAMES)
def test_image(task: str) -> None:
    lines = (TASKS / task / "environment" / "Dockerfile").read_text("utf-8").splitlines()
    assert lines[:2] == ["ARG BASE_IMAGE=python:3.12-slim-bookworm", "FROM ${BASE_IMAGE}"]
    assert "WORKDIR /app" in lines
    assert not any("--mount" in line or "<<" in line or "# syntax" in line for line in lines)


@pytest.mark.parametrize("task", NAMES)
def test_readme_names_each_dimension_and_the_reports_it_guards(task: str) -> None:
    readme = (TASKS / task / "README.md").read_text("utf-8")
    table = re.findall(r"^\| `([a-z_]+)` \| ", readme, re.MULTILINE)
    assert table == list(dimensions(task))
    assert set(re.findall(r"block/buzz#(\d+)", readme)) == GUARDS.get(task, set())


@pytest.mark.parametrize("task", NAMES)
def test_fixture_frame(task: str) -> None:
    told = fixture(task)
    assert told.requires_evidence
    assert told.user_display_name == USERS.get(task)
    assert told.disable_memory_injection == (task == "memory-retrieval")
    assert bool(told.memories) == (task == "memory-retrieval")
    assert bool(told.observe_channel_names) == (task == "create-channel-invite-users")
    assert bool(told.verifier_inputs) == (task == NAMED_PATH)


@pytest.mark.parametrize("task", NAMES)
def test_verifier_names_task_and_user(task: str) -> None:
    if task != "reply-to-thread":
        assert task == constants(task).TASK
    assert getattr(constants(task), "USER", None) == USERS.get(task)
    assert "evidence_complete" in dimensions(task)
    for rule in constants(task).VERIFIER.dimensions:
        assert rule.__doc__


@pytest.mark.parametrize(
    "path",
    [*sorted((MANIFESTS / "verifier_kit").glob("*.py")), *sorted(TASKS.glob("*/tests/*.py"))],
    ids=lambda path: str(path.relative_to(MANIFESTS)),
)
def test_verifiers_need_the_standard_library_alone_and_an_old_python(path: Path) -> None:
    tree = ast.parse(path.read_text("utf-8"), feature_version=(3, 9))
    imported = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            imported |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            imported.add((node.module or "").partition(".")[0])
    assert imported <= sys.stdlib_module_names | {"verifier_kit"}


def test_reply_to_thread_agrees() -> None:
    asked = instruction("reply-to-thread")
    for figure in ("month 0", "$120,000", "$75,000", "5%", "2%", "months 1 to 6"):
        assert figure in asked
    revenue = [120_000 * 1.05**month for month in range(1, 7)]
    expenses = [75_000 * 1.02**month for month in range(1, 7)]
    figures = constants("reply-to-thread").FIGURES
    assert figures == {
        "revenue": round(revenue[-1]),
        "expense": round(expenses[-1]),
        "profit": round(sum(revenue) - sum(expenses)),
    }
    assert figures == {"revenue": 160_811, "expense": 84_462, "profit": 374_470}
    assert all(label in asked for label in figures)


def test_user_mention_agrees() -> None:
    asked = instruction("user-mention")
    assert "12 software licenses" in asked
    assert "$37" in asked
    assert "one concise sentence" in asked
    assert constants("user-mention").ANNUAL_TOTAL == 12 * 37 * 12 == 5_328
    assert len(USERS["user-mention"].split()) == 3


def test_named_path_agrees() -> None:
    asked = instruction(NAMED_PATH)
    told = constants(NAMED_PATH)
    assert told.SKILL_PATH in asked
    (stored,) = fixture(NAMED_PATH).verifier_inputs
    assert stored == told.SKILL_PATH.replace("~", "/home/buzz")
    dockerfile = (TASKS / NAMED_PATH / "environment" / "Dockerfile").read_text("utf-8")
    assert stored in dockerfile
    assert "ENV HOME=/home/buzz" in dockerfile
    assert dockerfile.index("ARG MARKER_NONCE") < dockerfile.index("secrets.token_hex(12)")
    assert stored in (TASKS / NAMED_PATH / "tests" / "test.sh").read_text("utf-8")
    for field in told.FIELDS:
        assert field in asked
        assert f"{field}: " in dockerfile


def test_multiline_message_agrees() -> None:
    told = constants("multiline-message")
    assert told.BLOCK in instruction("multiline-message")
    assert told.BLOCK.count("\n") == told.NEWLINES == 6
    assert told.BLOCK in (TASKS / "multiline-message" / "README.md").read_text("utf-8")
    assert told.BLOCK.splitlines() == [
        "Release readiness",
        "",
        "- API: ready",
        "- Database: ready",
        "- Rollback: tested",
        "",
        "Owner: Platform Operations",
    ]


def test_narrative_agent_names_agrees() -> None:
    names = [entry.name for entry in fixture("narrative-agent-names").entries]
    assert list(constants("narrative-agent-names").STATUS) == names
    assert names == ["Aurora Audit Bot", "Beacon Deploy Bot"]
    asked = instruction("narrative-agent-names")
    for name, word in constants("narrative-agent-names").STATUS.items():
        assert name in asked
        assert word in asked
    assert all(
        entry.role == "bot" and entry.channel_member
        for entry in fixture("narrative-agent-names").entries
    )


def test_create_channel_agrees() -> None:
    task = "create-channel-invite-users"
    told, asked, entries = constants(task), instruction(task), fixture(task).entries
    assert fixture(task).observe_channel_names == (told.CHANNEL,)
    assert f"`{told.CHANNEL}`" in asked
    assert "one hour" in asked
    assert told.LIFETIME_S == 60 * 60
    roles = {entry.name: entry.role for entry in entries}
    assert len(roles) == told.USERS_IN_DIRECTORY + told.BOTS_IN_DIRECTORY == 60
    assert list(roles.values()).count("user") == told.USERS_IN_DIRECTORY == 50
    assert {name for name in roles if f"`{name}`" in asked} == {*told.MEMBERS, *told.BOTS}
    assert [roles[name] for name in told.MEMBERS] == ["user"] * 3
    assert [roles[name] for name in told.BOTS] == ["bot"] * 2
    assert tuple(f"benchmark-user-{n}" for n in ("07", "19", "42")) == told.MEMBERS
    assert told.BOTS == ("benchmark-bot-03", "benchmark-bot-08")
    assert not any(entry.channel_member for entry in entries)


def test_interleaved_reports_agree() -> None:
    task = "interleaved-agent-reports"
    told, asked, texts = constants(task), instruction(task), script_texts(fixture(task))
    assert tuple(entry.name for entry in fixture(task).entries) == told.REPORTERS
    assert tuple(texts) == told.REPORTS
    assert tuple(m.actor for m in fixture(task).scripted_messages) == told.REPORTERS
    assert all(m.reply_to_task and m.mention_orchestrator for m in fixture(task).scripted_messages)
    figures = {label: int(figure) for label, figure in told.INPUTS.items()}
    assert figures == {"North": 17, "South": 23, "reserve": 11, "multiplier": 3}
    value = figures["North"] + figures["South"] - figures["reserve"]
    assert str(value * figures["multiplier"]) == told.RESULT == "87"
    said = " ".join(texts.values())
    for label, figure in told.INPUTS.items():
        assert re.search(rf"{label}\D+{figure}\b", said)
        assert figure not in asked
    assert sorted(re.findall(r"\d+", said), key=int) == ["3", "11", "17", "23"]
    assert "(North + South - reserve) * multiplier" in asked
    assert all(name in asked for name in told.REPORTERS)


def test_cross_thread_requests_agree() -> None:
    task = "cross-thread-requests"
    told, asked, (script,) = constants(task), instruction(task), fixture(task).scripted_messages
    assert script.label == told.SECOND_REQUEST
    assert (script.actor, script.reply_to_task, script.mention_orchestrator) == (
        "user",
        False,
        True,
    )
    assert "(17 * 19) + 23" in asked
    assert ("ALPHA", str(17 * 19 + 23)) == told.ALPHA
    assert "(84 / 7) + 29" in script.content
    assert ("BETA", str(84 // 7 + 29)) == told.BETA
    assert "ALPHA" in asked
    assert "BETA" not in asked
    assert "BETA" in script.content
    assert "ALPHA" not in script.content


def test_ambiguous_user_mention_agrees() -> None:
    task = "ambiguous-user-mention"
    told, asked = constants(task), instruction(task)
    target, other = fixture(task).entries
    assert (target.key_id, other.key_id) == (told.TARGET, told.OTHER)
    assert target.name == other.name == "Taylor Morgan Lee"
    assert target.name in asked
    assert f"`{told.MESSAGE}`" in asked
    assert "ORCHID-72" in target.about
    assert "COBALT-19" in other.about
    assert "ORCHID-72" not in other.about
    assert "captain" not in asked
    assert {target.role, other.role} == {"user"}
    assert target.channel_member
    assert other.channel_member


def test_memory_answer_stands_in_one_seed_only() -> None:
    task = "memory-retrieval"
    told, seeds = constants(task), fixture(task).memories
    from_seeds = {seed.slug: set(told.numbers(seed.value)) for seed in seeds}
    assert list(from_seeds) == [
        "total-customers-per-month",
        "customer-value-metric",
        "customers-metrics-spring-24",
        "new-customers-april-2024",
        "total-customers-metric",
    ]
    assert [slug for slug, found in from_seeds.items() if told.ANSWER in found] == [
        "total-customers-metric"
    ]
    assert from_seeds.pop("total-customers-metric") == {352_345.0, 2024.0}
    distractors = set().union(*from_seeds.values()) - {told.YEAR}
    assert distractors == set(told.DISTRACTORS)
    assert distractors == {361_250, 351_340, 2_400, 325_401, 3_710, 21_604}
    asked = instruction(task)
    assert set(told.numbers(asked)) == {2024.0}
    assert "April 2024" in asked
    for path in (TASKS / task).rglob("*"):
        if path.is_file() and path.suffix not in (".yaml", ".py") and path.name != "README.md":
            assert not re.search("352[,_]?345", path.read_text("utf-8")), path


@pytest.mark.parametrize("slug", [seed.slug for seed in fixture("memory-retrieval").memories])
def test_each_memory_alone_passes_only_if_it_is_the_answer(slug: str) -> None:
    evidence = accepted("memory-retrieval")
    seeds = {seed.slug: seed.value for seed in fixture("memory-retrieval").memories}
    evidence["messages"][-1]["content"] = seeds[slug]
    reward, details = answer("memory-retrieval", evidence)
    assert reward["reward"] == float(slug == "total-customers-metric")
    assert details["mentions_distractor"] == (slug != "total-customers-metric")


@pytest.mark.parametrize("task", IMPLICIT)
def test_implicit_behaviour_is_not_asked_for(task: str) -> None:
    assert instruction_faults(task_of(task)) == []
    assert IMPLICIT_TAG in config(task).metadata.tags
    readme = (TASKS / task / "README.md").read_text("utf-8")
    assert "The instruction does not ask for that, and must not" in readme


def test_personas_say_no_more_than_they_may() -> None:
    assert sorted((MANIFESTS / "personas").glob("*.md"))
    assert persona_faults(MANIFESTS) == []
