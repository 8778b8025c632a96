from __future__ import annotations

from pathlib import Path

import pytest

from scheduler.dataset.hints import hints_in, instruction_faults, persona_faults
from tests.scheduler.dataset.builders import edit, make_task, read_task
from tests.scheduler.manifest.builders import write, write_world


@pytest.mark.parametrize(
    "hint",
    [
        "Reply in one sentence.",
        "Answer in the thread.",
        "Mention me.",
        "Tag me when done.",
        "Notify the requester.",
        "Write @user first.",
        "Do not write at the top-level.",
    ],
)
def test_hints_are_recognised(hint: str) -> None:
    assert hints_in(hint)


def test_most_tasks_may_say_what_they_like(tmp_path: Path) -> None:
    folder = make_task(tmp_path)
    (folder / "instruction.md").write_text("Reply in my thread.\n")
    assert instruction_faults(read_task(folder)) == []
    edit(folder / "task.toml", 'tags = ["messaging"]', 'tags = ["implicit-behavior"]')
    words = [line.split("'")[1] for line in instruction_faults(read_task(folder))]
    assert words == ["Repl", "thread"] or words == ["Reply", "thread"]


def test_personas_of_shipped_conditions(tmp_path: Path) -> None:
    write_world(tmp_path)
    manifests = tmp_path / "manifests"
    assert persona_faults(manifests) == []
    write(manifests / "personas" / "loud.md", "Mention everybody. " + "Yes. " * 40)
    assert persona_faults(manifests) == [
        "personas/loud.md says 'Mention'",
        "personas/loud.md has more than 40 words",
    ]
    edit(manifests / "conditions" / "one.yaml", "sha256: ", "sha256: 00")
    assert any("one.yaml" in line for line in persona_faults(manifests))
