"""Words that would ask for what two tasks measure unasked.

Those tasks ask whether an agent replies in the thread and hands its turn back by itself. Neither
their instructions nor a shipped persona may speak of it: the base prompt alone does.
"""

from __future__ import annotations

import re
from pathlib import Path

from scheduler.manifest.condition import load_condition
from scheduler.manifest.faults import ManifestError
from workers.contract.task import Task

IMPLICIT_TAG = "implicit-behavior"
"""The tag of a task whose instruction says nothing of the behaviour under test."""

PERSONA_WORDS = 40
"""A persona says that there is no team and that answers are direct and short; no more fits."""

_HINTS = re.compile(
    r"thread|repl(?:y|ies|ied)|mention|notif|callback|call back|\bping|\btag|respond to"
    r"|answer to me|@|top.level|channel|\bchain\b|p-tag|quote",
    re.IGNORECASE,
)


def hints_in(text: str) -> list[str]:
    """The words of a text that hint at threads, replies or mentions, as they stand there."""
    return list(dict.fromkeys(_HINTS.findall(text)))


def instruction_faults(task: Task) -> list[str]:
    """What the instruction of a task gives away; nothing is forbidden to most."""
    if IMPLICIT_TAG not in task.config.metadata.tags:
        return []
    return [
        f"instruction.md says {word!r}: the behaviour under test would be asked for"
        for word in hints_in(task.instruction)
    ]


def persona_faults(manifests: Path) -> list[str]:
    """What the prompts of the shipped conditions give away, or say beyond what they may."""
    prompts: dict[str, str] = {}
    faults = []
    for path in sorted((manifests / "conditions").glob("*.yaml")):
        try:
            prompts.update(load_condition(path, manifests).prompts)
        except ManifestError as error:
            faults.append(str(error))
    texts = {f"prompt {digest[:12]}": text for digest, text in prompts.items()}
    for path in sorted((manifests / "personas").glob("*.md")):
        texts[f"personas/{path.name}"] = path.read_text("utf-8", errors="replace")
    for name, text in texts.items():
        faults.extend(f"{name} says {word!r}" for word in hints_in(text))
        if len(text.split()) > PERSONA_WORDS:
            faults.append(f"{name} has more than {PERSONA_WORDS} words")
    return faults
