"""Nothing gives an answer away: not the image, not the environment, not the relay, not the prompt.

A real trial is run whose model looks around in its container and then ends its turn. Images are
searched once more from outside, where no permission hides a file.
"""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from scheduler.manifest.task import load_task
from tests.manifests.task_verifiers import MANIFESTS, NAMED_PATH, TASKS
from tests.workers.trial.stage import stage
from workers.contract.spec import Epoch, Lease, attempt_id
from workers.contract.task_folder import archive_key, pack

pytestmark = pytest.mark.docker

KIT = MANIFESTS / "verifier_kit"
SKILL = "/home/buzz/.claude/skills/context-health-check/SKILL.md"
MARKER = re.compile(r"chc-[0-9a-f]{24}")

LOOK = """\
export LC_ALL=C
look() {{ grep -raE "$1" / --exclude-dir=proc --exclude-dir=sys --exclude-dir=dev -l 2>/dev/null; }}
look "{pattern}|^root:x:0:0:"
echo ---
cat /proc/[0-9]*/environ | tr '\\0' '\\n' | grep -aE "{pattern}|^LC_ALL="
"""
"""Every file that the agent can read, and the environment of every process; with a known hit."""

KNOWN_FILES = ["/etc/passwd"]
KNOWN_VARIABLES = ["LC_ALL=C"]
COPIES = {"/etc/passwd-"}
"""Further files that some images have the known hit in."""

ANSWERS = {
    "memory-retrieval": "352[,_]?345",
    "reply-to-thread": "160[,_]?811|84[,_]?462|374[,_]?470",
    "ambiguous-user-mention": "ORCHID-7[2]|COBALT-1[9]",
    # The marker is another in each image; the names of its letters are not.
    NAMED_PATH: "chc-[0-9a-f]{24}",
}
"""By task, what must not stand anywhere; written so that the pattern is no match for itself."""

WHOLE = "(^|[^0-9A-Za-z])({pattern})([^0-9A-Za-z]|$)"


@dataclass
class Seen:
    """A trial as its agent could see it."""

    image: str
    files: list[str]
    environment: list[str]
    prompt: str
    """All that the model was told before it did anything."""
    events: list[dict[str, Any]]
    """Everything on the relay."""
    marker: str
    """Of the named path, from the stored inputs; empty where the task has none."""


def run(folder: Path, name: str) -> Seen:
    """Runs a trial of a task whose agent looks around and does nothing."""
    return asyncio.run(_run(folder, name))


async def _run(folder: Path, name: str) -> Seen:
    pattern = WHOLE.format(pattern=ANSWERS[name])
    async with stage(folder, LOOK.format(pattern=pattern)) as there:
        task = load_task(TASKS / name, KIT)
        there.store.put(archive_key(task.digest), pack(TASKS / name, KIT))
        attempt = attempt_id(there.sweep.sweep, "c", task.digest, 0)
        lease = Lease(
            attempt=attempt, index=0, cell=there.cell.cell, epoch=Epoch(1, 1), term_s=60.0
        )
        cell = there.cell.model_copy(update={"task": task})
        end = await there.run(cell, lease, there.control)
        assert end.record.cause == "no_reply", end.record.detail
        first, second = there.requests
        (result,) = (each for each in second["messages"] if each["role"] == "tool")
        files, environment = json.loads(result["content"])["stdout"].split("---\n")
        lines = there.stored(end, "relay-events.jsonl").decode().splitlines()
        skill = there.stored(end, f"inputs{SKILL}").decode() if name == NAMED_PATH else ""
    found = MARKER.search(skill)
    return Seen(
        image=str(end.record.digests.image),
        files=sorted(set(files.splitlines()) - COPIES),
        environment=sorted(set(environment.splitlines())),
        prompt=json.dumps(first, ensure_ascii=False),
        events=[json.loads(line) for line in lines],
        marker=found[0] if found else "",
    )


def holding(events: list[dict[str, Any]], text: str) -> list[dict[str, Any]]:
    """The events that have a text anywhere."""
    return [event for event in events if re.search(text, json.dumps(event, ensure_ascii=False))]


def image_files(image: str, pattern: bytes) -> Iterator[str]:
    """The files of an image that match, and its variables; read from outside."""
    whole = WHOLE.encode().replace(b"{pattern}", pattern)
    made = subprocess.run(
        ["docker", "create", "--label=apiary.test=given-away", image],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    ).stdout.strip()
    try:
        told = subprocess.run(
            ["docker", "inspect", made], capture_output=True, check=True, timeout=60
        ).stdout
        yield from (name for name in ["the configuration"] if re.search(whole, told))
        with subprocess.Popen(["docker", "export", made], stdout=subprocess.PIPE) as export:
            with tarfile.open(fileobj=export.stdout, mode="r|") as archive:
                for member in archive:
                    stream = archive.extractfile(member) if member.isreg() else None
                    data = b"" if stream is None else stream.read()
                    # The plain pattern first: it is quick, and hardly ever there.
                    if re.search(pattern, data) and re.search(whole, data):
                        yield f"/{member.name}"
            assert export.wait(60) == 0
    finally:
        subprocess.run(["docker", "rm", "--force", "--volumes", made], capture_output=True)


@pytest.mark.parametrize("name", ["memory-retrieval", "reply-to-thread"])
def test_an_answer_stands_nowhere_in_plain_text(name: str, tmp_path: Path) -> None:
    seen = run(tmp_path, name)
    assert (seen.files, seen.environment) == (KNOWN_FILES, KNOWN_VARIABLES)
    assert holding(seen.events, ANSWERS[name]) == []
    assert not re.search(ANSWERS[name], seen.prompt)
    assert list(image_files(seen.image, ANSWERS[name].encode())) == []
    if name == "memory-retrieval":
        # The memories are there, and nobody but the agent can read them.
        memories = [event for event in seen.events if event["kind"] == 30174]
        assert len(memories) >= 5
        assert not holding(memories, "customer")


def test_the_link_from_code_to_key_stands_in_one_profile_alone(tmp_path: Path) -> None:
    name = "ambiguous-user-mention"
    seen = run(tmp_path, name)
    assert (seen.files, seen.environment) == (KNOWN_FILES, KNOWN_VARIABLES)
    assert list(image_files(seen.image, ANSWERS[name].encode())) == []
    question, *others = sorted(holding(seen.events, "ORCHID-72"), key=lambda e: -e["kind"])
    (profile,) = others
    assert (question["kind"], profile["kind"]) == (9, 0)
    assert profile["pubkey"] not in json.dumps(question)
    assert profile["pubkey"] not in seen.prompt
    (other,) = holding(seen.events, "COBALT-19")
    assert (other["kind"], other["pubkey"] != profile["pubkey"]) == (0, True)
    assert "taylor-release-captain" not in json.dumps(seen.events)


def test_the_marker_stands_in_no_second_place(tmp_path: Path) -> None:
    seen = run(tmp_path, NAMED_PATH)
    assert seen.marker
    assert (seen.files, seen.environment) == ([*KNOWN_FILES, SKILL], KNOWN_VARIABLES)
    assert list(image_files(seen.image, MARKER.pattern.encode())) == [SKILL]
    assert holding(seen.events, MARKER.pattern) == []
    assert not MARKER.search(seen.prompt)
