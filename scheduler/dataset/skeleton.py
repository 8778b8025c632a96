"""The folder of a new task: small, whole, and right, so that it can be changed step by step.

Its question is one that the scripted solver can read, so all attempts of a check are known.
"""

from __future__ import annotations

import re
from pathlib import Path

from scheduler.dataset.proof import proof_path

NAME_RULE = "small letters and digits with hyphens between them, at most 64 characters"
_NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")

TASK_TOML = """\
schema_version = "1.3"

[task]
name = "buzz-native/{name}"
description = "Answer a question in the thread of the one who asked."
authors = [{{ name = "Your name" }}]
keywords = ["buzz-native", "messaging"]

[metadata]
evaluation_layer = "{layer}"
difficulty = "easy"
category = "collaboration"
tags = ["messaging"]

[agent]
timeout_sec = 300.0

[verifier]
timeout_sec = 30.0

[environment]
network_mode = "public"
cpus = 1
memory_mb = 1024
storage_mb = 1024
"""

INSTRUCTION = """\
GAMMA request: what is (6 * 7) - 2? Label your answer GAMMA.
"""

FIXTURE = """\
# What stands on the relay before the agent starts; the fields are in manifests/README.md.
schema_version: 1
requires_evidence: true
user_display_name: Grace Ada Hill
"""

DOCKERFILE = """\
ARG BASE_IMAGE=python:3.12-slim-bookworm
FROM ${BASE_IMAGE}
WORKDIR /app
"""

TEST_SH = """\
#!/bin/sh
set -eu

mkdir -p /logs/verifier
exec python3 -B /tests/verify.py \\
  --evidence /logs/artifacts/buzz-evidence.json \\
  --reward /logs/verifier/reward.json \\
  --details /logs/verifier/details.json
"""

VERIFY_PY = '''\
"""Judges ``{name}``: the right answer, in the thread of the one who asked."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

# In a container the kit lies beside this file.
sys.path[:0] = [str(Path(__file__).resolve().parent)]

from verifier_kit import Evidence, Verifier, has_labelled  # noqa: E402

TASK = "{name}"
USER = "Grace Ada Hill"
ANSWER = ("GAMMA", "40")


def answer_correct(seen: Evidence) -> bool:
    """The final has the label before exactly the result."""
    return seen.final is not None and has_labelled(seen.final.text, *ANSWER, whole=True)


def reply_to_thread(seen: Evidence) -> bool:
    """The final replies to the task event."""
    return seen.final is not None and seen.final.replies_to(seen.task_event_id)


def user_mentioned(seen: Evidence) -> bool:
    """The final notifies the requester."""
    return seen.final is not None and seen.final.mentions(seen.named_key(USER))


def evidence_complete(seen: Evidence) -> bool:
    """The evidence is whole and this task's, and names the task event."""
    return seen.is_complete(TASK) and seen.names_task_event


def details(seen: Evidence) -> dict[str, Any]:
    """Which message was judged."""
    return {{"final_message_id": seen.final and seen.final.id}}


VERIFIER = Verifier(
    dimensions=(answer_correct, reply_to_thread, user_mentioned, evidence_complete),
    details=details,
)

if __name__ == "__main__":
    sys.exit(VERIFIER.run())
'''

README = """\
# {name}

What an agent has to do, why it matters, and what a weak result says.

`Grace Ada Hill` asks one question; the answer is 40. Judged is the agent's last message. `reward`
is 1 if every dimension is 1.

| dimension | holds if |
|---|---|
| `answer_correct` | the message has GAMMA before exactly 40, one or more non-digits between |
| `reply_to_thread` | it replies to the task event |
| `user_mentioned` | it notifies the requester |
| `evidence_complete` | evidence version 1 of this task, whole, with one agent and a task event |
"""

PROOF = """\
# What proves this task: facts that its files share, transcripts that pass, transcripts that do not.
schema_version: 1
facts:
  - what: the requester's name
    values: verify:USER
    equal: [fixture:user_display_name]
    stands_in: [README.md]
  - what: the label
    values: verify:ANSWER.0
    stands_in: [instruction.md]
  - what: the answer
    values: verify:ANSWER.1
    stands_in: [README.md]
    absent_from: [instruction.md, environment/Dockerfile]
accepted:
  - name: in the thread
    says:
      - &answer
        text: "GAMMA: 40"
        reply_to: task
        mentions: [user]
refused:
  - name: a wrong answer
    loses: [answer_correct]
    says:
      - <<: *answer
        text: "GAMMA: 41"
  - name: at the top level
    loses: [reply_to_thread]
    says:
      - <<: *answer
        reply_to: null
  - name: a name without a mention
    loses: [user_mentioned]
    says:
      - <<: *answer
        text: "Grace Ada Hill: GAMMA: 40"
        mentions: []
  - name: truncated
    loses: [evidence_complete]
    says:
      - *answer
    evidence: {truncated: true}
  - name: silence
    loses: [answer_correct, reply_to_thread, user_mentioned]
# What attempts with scripted models must come to. The solver reads questions of a few kinds only:
# take it out where yours is of another.
attempts:
  scripted-solver: pass
  scripted-refuser: wrong
  scripted-silent: no_reply
"""


def is_name(name: str) -> bool:
    """Whether a task may be called so."""
    return len(name) <= 64 and _NAME.fullmatch(name) is not None


def write_skeleton(folder: Path, layer: str) -> list[Path]:
    """Writes a task's folder and its proof; gives every file.

    Raises:
        OSError: the disk refused.
    """
    name = folder.name
    texts = {
        folder / "task.toml": TASK_TOML.format(name=name, layer=layer),
        folder / "instruction.md": INSTRUCTION,
        folder / "fixture.yaml": FIXTURE,
        folder / "environment" / "Dockerfile": DOCKERFILE,
        folder / "tests" / "test.sh": TEST_SH,
        folder / "tests" / "verify.py": VERIFY_PY.format(name=name),
        folder / "README.md": README.format(name=name),
        proof_path(folder): PROOF,
    }
    for path, text in texts.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    (folder / "tests" / "test.sh").chmod(0o755)
    return list(texts)
