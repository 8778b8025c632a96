from __future__ import annotations

from pathlib import Path

import pytest

from scheduler.dataset.agreement import disagreements
from scheduler.dataset.places import TaskTexts
from scheduler.dataset.proof import Fact, load_proof
from tests.scheduler.dataset.builders import edit, make_task, read_task


def told(folder: Path, **fact: object) -> list[str]:
    """What a fact about a task's folder is told to be wrong in."""
    texts = TaskTexts(folder, read_task(folder))
    return disagreements((Fact.model_validate({"what": "it", **fact}),), texts)


@pytest.mark.parametrize(
    ("fact", "expected"),
    [
        ({"values": "verify:USER", "equal": ("fixture:user_display_name",)}, []),
        (
            {"values": "verify:ANSWER", "equal": ("fixture:user_display_name",)},
            ["it: verify:ANSWER has 'GAMMA', '40', fixture:user_display_name has 'Grace Ada Hill'"],
        ),
        ({"values": ("GAMMA", 40), "equal": ("verify:ANSWER",)}, []),
        (
            {"values": ("GAMMA", 41), "stands_in": ("README.md", "verify:ANSWER")},
            [
                "it: '41' (the proof) does not stand in README.md",
                "it: '41' (the proof) does not stand in verify:ANSWER",
            ],
        ),
        (
            {"values": "verify:ANSWER", "absent_from": ("instruction.md",)},
            ["it: 'GAMMA' (verify:ANSWER) stands in instruction.md, and must not"],
        ),
        ({"values": "verify:ANSWER.1", "absent_from": ("instruction.md",)}, []),
        ({"values": "verify:NONE", "stands_in": ("README.md",)}, None),
        (
            {"values": "fixture:directory.name", "stands_in": ("README.md",)},
            ["it: fixture:directory.name has no value"],
        ),
    ],
)
def test_a_fact(tmp_path: Path, fact: dict[str, object], expected: list[str] | None) -> None:
    found = told(make_task(tmp_path), **fact)
    if expected is None:
        assert len(found) == 1
        assert "no 'NONE'; there are TASK, USER, ANSWER" in found[0]
    else:
        assert found == expected


@pytest.mark.parametrize(
    ("file", "old", "new", "line"),
    [
        ("fixture.yaml", "Hill", "Hall", "verify:USER has 'Grace Ada Hill'"),
        ("tests/verify.py", '"40"', '"41"', "'41' (verify:ANSWER.1) does not stand in README.md"),
        ("README.md", "is 40", "is 50", "does not stand in README.md"),
        ("instruction.md", "- 2?", "- 2 = 40?", "stands in instruction.md, and must not"),
    ],
)
def test_one_file_changed_alone_is_found(
    tmp_path: Path, file: str, old: str, new: str, line: str
) -> None:
    folder = make_task(tmp_path)
    if file == "README.md":
        edit(folder / file, "before exactly 40", "before it")
    edit(folder / file, old, new)
    texts = TaskTexts(folder, read_task(folder))
    assert any(line in each for each in disagreements(load_proof(folder).facts, texts))
