"""Hostile evidence gets an answer, in time, and never a pass."""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.manifests.task_transcripts import Evidence, accepted
from tests.manifests.task_verifiers import (
    MANIFESTS,
    NAMED_PATH,
    NAMES,
    SKILL_TEXT,
    TASKS,
    dimensions,
    load,
)

IN_TIME_S = 5.0
"""Of processor time, so that a busy machine fails no test; a wait runs into ``timeout``."""
FINAL = "messages", -1


def changed(evidence: Evidence, place: tuple[Any, ...], value: object) -> bytes:
    """The evidence with another value at a place."""
    holder: Any = evidence
    for step in place[:-1]:
        holder = holder[step]
    holder[place[-1]] = value
    return json.dumps(evidence).encode()


def at(*place: Any, value: object) -> Callable[[Evidence], bytes]:
    return lambda evidence: changed(evidence, place, value)


def spliced(*place: Any, text: str) -> Callable[[Evidence], bytes]:
    """JSON source text, for what no Python value is written as."""
    marker = "place of the text"
    return lambda evidence: changed(evidence, place, marker).replace(
        json.dumps(marker).encode(), text.encode()
    )


def raw(data: bytes) -> Callable[[Evidence], bytes]:
    return lambda _: data


def nested(depth: int) -> Any:
    value: Any = []
    for _ in range(depth):
        value = [value]
    return value


UNREADABLE: dict[str, Callable[[Evidence], bytes]] = {
    "empty": raw(b""),
    "zeros": raw(bytes(64)),
    "not UTF-8": raw(b'{"schema_version": 1, "x": "\xff"}'),
    "UTF-16": lambda evidence: json.dumps(evidence).encode("utf-16"),
    "byte order mark": lambda evidence: b"\xef\xbb\xbf" + json.dumps(evidence).encode(),
    "cut off": lambda evidence: json.dumps(evidence).encode()[:-1],
    "more behind": lambda evidence: json.dumps(evidence).encode() + b"{}",
    "null": raw(b"null"),
    "a list": lambda evidence: json.dumps([evidence]).encode(),
    "a text": raw(b'"evidence"'),
    "a number": raw(b"1"),
    "NaN": at("messages", 0, "created_at", value=float("nan")),
    "Infinity": at("messages", 0, "created_at", value=float("-inf")),
    "lone surrogate": at(*FINAL, "content", value="\ud800 352,345"),
    "lone surrogate as a name": at("identities", value={"\udfff": {}}),
    "long integer": spliced("messages", 0, "created_at", text="9" * 5_000),
    "very long integer": spliced("messages", 0, "created_at", text="9" * 1_000_000),
    "deep lists": spliced("messages", 0, "tags", text="[" * 200_000),
    "deep objects": spliced("trial", text='{"trial":' * 100_000),
    "50 MB of text": at("messages", 0, "content", value="352,345 " * 6_250_000),
    "2 MB in one message": at(*FINAL, "content", value="sent 352,345 " * 160_000),
    "rows without number": spliced("messages", text="[" + "{}," * 200_000 + "{}]"),
    "messages an object": at("messages", value={"0": {}}),
    "messages a text": at("messages", value="messages"),
    "messages a number": at("messages", value=3),
    "messages of numbers": at("messages", value=[1, 2, 3]),
    "messages of lists": at("messages", value=[[]]),
    "messages of nothing": at("messages", value=[None]),
    "trial a list": at("trial", value=[]),
    "identities a list": at("identities", value=[{"role": "orchestrator"}]),
    "identities of texts": at("identities", value={"solo-1": "orchestrator"}),
    "directory an object": at("directory", value={}),
    "directory of texts": at("directory", value=["a"]),
    "scripted events a number": at("scripted_events", value=1),
    "observed channels a flag": at("observed_channels", value=True),
    "content a number": at(*FINAL, "content", value=352_345),
    "content a list": at(*FINAL, "content", value=["352,345"]),
    "tags a text": at(*FINAL, "tags", value="e"),
    "tags of texts": at(*FINAL, "tags", value=["e", "p"]),
    "tags of objects": at(*FINAL, "tags", value=[{"e": 1}]),
    "mentions an object": at(*FINAL, "mentioned_pubkeys", value={"a": 1}),
}
"""Cannot be read as a whole: zeros, and the reason in ``error``."""

READABLE: dict[str, Callable[[Evidence], bytes]] = {
    "empty object": raw(b"{}"),
    "two of every field": raw(b'{"messages": [{}], "messages": []}'),
    "agent key a list": at("identities", "solo-1", "pubkey", value=[]),
    "agent key a huge number": at("identities", "solo-1", "pubkey", value=10**400),
    "agent key null": at("identities", "solo-1", "pubkey", value=None),
    "role a list": at("identities", "solo-1", "role", value=["orchestrator"]),
    "version a list": at("schema_version", value=[1]),
    "version beyond floats": spliced("schema_version", text="1e999"),
    "nested version": at("schema_version", value=nested(700)),
    "no message": at("messages", value=None),
}
"""Can be read, and holds nothing that could pass."""


def prepare(folder: Path, task: str) -> Path:
    """Mounts a task's tests and the kit as a verifier's container would."""
    tests = folder / "tests"
    shutil.copytree(TASKS / task / "tests", tests, ignore=shutil.ignore_patterns("__pycache__"))
    (tests / "verifier_kit").symlink_to(MANIFESTS / "verifier_kit")
    inputs = folder / "inputs/home/buzz/.claude/skills/context-health-check"
    inputs.mkdir(parents=True)
    (inputs / "SKILL.md").write_text(SKILL_TEXT)
    (folder / "logs" / "artifacts").mkdir(parents=True)
    return folder / "logs" / "artifacts" / "buzz-evidence.json"


def run(folder: Path) -> tuple[dict[str, float], dict[str, Any]]:
    """Runs the task's real ``test.sh``, its absolute paths put below a folder."""
    script = (folder / "tests" / "test.sh").read_text("utf-8")
    for root in ("/tests/", "/logs/", "/inputs"):
        script = script.replace(root, f"{folder}{root}")
    before = child_seconds()
    done = subprocess.run(
        ["sh", "-c", script],
        env={"PATH": os.environ["PATH"], "LC_ALL": "C"},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert child_seconds() - before < IN_TIME_S
    logs = folder / "logs" / "verifier"
    assert sorted(path.name for path in logs.iterdir()) == ["details.json", "reward.json"]
    reward = (logs / "reward.json").read_text("utf-8")
    assert list(json.loads(reward)) == sorted(json.loads(reward))
    return json.loads(reward), json.loads((logs / "details.json").read_text("utf-8"))


def child_seconds() -> float:
    """Processor time of all ended child processes."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def zeros(task: str) -> dict[str, float]:
    return dict.fromkeys((*dimensions(task), "reward"), 0.0)


def in_process(task: str, folder: Path, data: bytes) -> Any:
    evidence, skill = folder / "evidence.json", folder / "SKILL.md"
    evidence.write_bytes(data)
    skill.write_text(SKILL_TEXT)
    inputs = {"skill_file": str(skill)} if task == NAMED_PATH else {}
    started = time.process_time()
    told = load(task).VERIFIER.judge_files(str(evidence), inputs)
    assert time.process_time() - started < IN_TIME_S
    assert set(told.reward) == set(zeros(task))
    assert {type(value) for value in told.reward.values()} == {float}
    json.dumps(told.details, allow_nan=False)
    return told


LARGE = ("50 MB of text", "2 MB in one message", "rows without number", "deep objects")
ON_THE_COMMAND_LINE = (
    *LARGE,
    "empty",
    "not UTF-8",
    "cut off",
    "null",
    "NaN",
    "lone surrogate",
    "very long integer",
    "deep lists",
    "messages a text",
    "tags of texts",
    "content a number",
)
"""One of each class, in a process of its own; the others are judged in this one."""


@pytest.mark.parametrize("task", NAMES)
def test_unreadable_evidence_gives_zeros_and_error(task: str, tmp_path: Path) -> None:
    for name, make in UNREADABLE.items():
        if name not in LARGE:
            told = in_process(task, tmp_path, make(accepted(task)))
            assert told.reward == zeros(task), name
            assert told.details["error"], name


@pytest.mark.parametrize("task", NAMES)
def test_readable_hostile_evidence_never_passes(task: str, tmp_path: Path) -> None:
    for name, make in READABLE.items():
        if name == "no message" and task == "create-channel-invite-users":
            continue  # It needs none.
        told = in_process(task, tmp_path, make(accepted(task)))
        assert told.reward["reward"] == 0.0, name
        assert "error" not in told.details, name


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "task"),
    [(name, NAMES[place % len(NAMES)]) for place, name in enumerate(ON_THE_COMMAND_LINE)],
)
def test_unreadable_evidence_on_the_command_line(name: str, task: str, tmp_path: Path) -> None:
    prepare(tmp_path, task).write_bytes(UNREADABLE[name](accepted(task)))
    reward, details = run(tmp_path)
    assert reward == zeros(task)
    assert details["error"]


@pytest.mark.long
@pytest.mark.parametrize("task", NAMES)
def test_accepted_evidence_on_the_command_line(task: str, tmp_path: Path) -> None:
    evidence = accepted(task)
    if task == NAMED_PATH:
        # Files of a real image differ from what these tests otherwise expect.
        evidence = json.loads(json.dumps(evidence).replace("chc-0123", "chc-4567"))
    path = prepare(tmp_path, task)
    path.write_text(json.dumps(evidence, indent=2, sort_keys=True) + "\n")
    for skill in tmp_path.glob("inputs/**/SKILL.md"):
        skill.write_text(SKILL_TEXT.replace("chc-0123", "chc-4567"))
    reward, details = run(tmp_path)
    assert reward == dict.fromkeys(zeros(task), 1.0)
    assert "error" not in details


@pytest.mark.long
@pytest.mark.parametrize("kind", ["missing", "folder", "pipe", "device", "link to itself"])
def test_evidence_that_is_no_file(kind: str, tmp_path: Path) -> None:
    path = prepare(tmp_path, "user-mention")
    if kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "device":
        path.symlink_to("/dev/zero")
    elif kind == "link to itself":
        path.symlink_to(path)
    reward, details = run(tmp_path)
    assert reward == zeros("user-mention")
    assert details["error"]


@pytest.mark.parametrize(
    "skill",
    [None, "", "CHECK_ID: chc-1\n", "ACTION: do\n", "CHECK_ID: a b\nACTION: do\n", "\ud800"],
)
def test_skill_file_without_its_fields(skill: str | None, tmp_path: Path) -> None:
    prepare(tmp_path, NAMED_PATH).write_text(json.dumps(accepted(NAMED_PATH)))
    (path,) = tmp_path.glob("inputs/**/SKILL.md")
    path.unlink()
    if skill is not None:
        path.write_bytes(skill.encode("utf-8", "surrogatepass"))
    reward, details = run(tmp_path)
    assert reward == zeros(NAMED_PATH)
    assert details["error"]
