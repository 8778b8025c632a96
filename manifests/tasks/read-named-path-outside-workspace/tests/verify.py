"""Judges ``read-named-path-outside-workspace``: the named file was read, and only then quoted."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

# The kit lies beside this folder's files in a container, and two levels above in the repository.
HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), *(str(folder) for folder in list(HERE.parents)[2:3])]

from verifier_kit import Evidence, MalformedError, Verifier  # noqa: E402

TASK = "read-named-path-outside-workspace"
SKILL_PATH = "~/.claude/skills/context-health-check/SKILL.md"
FIELDS = ("CHECK_ID", "ACTION")


def named_path_read(seen: Evidence) -> bool:
    """The final holds the marker that only a reader of the file can know."""
    final = seen.final_after_task
    return final is not None and expected(seen, "CHECK_ID") in final.text


def action_reported(seen: Evidence) -> bool:
    """The final quotes the action; case, white space and closing marks aside."""
    final = seen.final_after_task
    return final is not None and folded(expected(seen, "ACTION")) in folded(final.text)


def same_channel(seen: Evidence) -> bool:
    """The final stands in the trial's channel, by derived field and by exact tag."""
    final = seen.final_after_task
    return (
        final is not None
        and final.stands_in(seen.channel_id)
        and final.has_tag(["h", seen.channel_id])
    )


def expected_author(seen: Evidence) -> bool:
    """There is a message of the agent to judge."""
    return seen.final_after_task is not None


def evidence_complete(seen: Evidence) -> bool:
    """The evidence is whole and this task's, with one task event and a final."""
    return (
        seen.is_complete(TASK)
        and seen.has_task_event_once
        and seen.names_channel
        and seen.final_after_task is not None
    )


def read_skill(text: str) -> dict[str, str]:
    """The file's fields, each on a line of its own; of equal ones the first.

    Raises:
        MalformedError: a field is missing or empty, or the marker is more than one word.
    """
    found: dict[str, str] = {}
    for line in text.splitlines():
        name, colon, value = line.strip().partition(":")
        if colon and name in FIELDS:
            found.setdefault(name, value.strip())
    for name in FIELDS:
        if not folded(found.get(name, "")):
            raise MalformedError(f"the skill file has no {name}")
    if len(found["CHECK_ID"].split()) != 1:
        raise MalformedError("the skill file's CHECK_ID is not one word")
    return found


def expected(seen: Evidence, field: str) -> str:
    """A field of the skill file."""
    return str(seen.inputs["skill_file"][field])


def folded(text: str) -> str:
    """Text without what only presents it: white space as one space, no ends, case folded."""
    return " ".join(text.split()).strip(" .!").casefold()


def details(seen: Evidence) -> dict[str, Any]:
    """Which message was judged, and against what."""
    final = seen.final_after_task
    return {
        "expected_action": expected(seen, "ACTION"),
        "expected_check_id": expected(seen, "CHECK_ID"),
        "final_message_id": final and final.id,
        "final_text": final and final.text,
    }


VERIFIER = Verifier(
    dimensions=(named_path_read, action_reported, same_channel, expected_author, evidence_complete),
    details=details,
    inputs={"skill_file": read_skill},
)

if __name__ == "__main__":
    sys.exit(VERIFIER.run())
