"""What a check of a data set found: a mark for each task and each thing that was looked at."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from scheduler.dataset.proof import EXPECTED

State = Literal["ok", "fault", "broken", "none"]

ATTEMPTS: dict[str, str] = {name.removeprefix("scripted-"): name for name in EXPECTED}
"""Column to condition of the attempts that are made."""

COLUMNS = ("schema", "digest", "hints", "facts", "image", "tests", *ATTEMPTS)
"""What is looked at, in this order."""


@dataclass(frozen=True)
class Mark:
    """What came of one look at one task."""

    state: State
    """``fault``: the data is wrong; ``broken``: this machine could not look; ``none``: not due."""
    lines: tuple[str, ...] = ()
    """What is wrong, or why nobody looked."""


OK = Mark("ok")
NOT_DUE = Mark("none")


def mark(faults: list[str]) -> Mark:
    """A mark for the faults that were found."""
    return Mark("fault", tuple(faults)) if faults else OK


@dataclass
class TaskReport:
    """One task's marks."""

    name: str
    """Of its folder."""
    marks: dict[str, Mark] = field(default_factory=dict)
    """By column; what is missing was not due."""
    seconds: float = 0.0
    """Spent on it, all attempts included."""

    def mark_of(self, column: str) -> Mark:
        """The mark in a column."""
        return self.marks.get(column, NOT_DUE)

    def problems(self) -> Iterator[tuple[str, str]]:
        """(column, line) of everything that is wrong."""
        for column in COLUMNS:
            found = self.mark_of(column)
            if found.state in ("fault", "broken"):
                yield from ((column, line) for line in found.lines)


@dataclass
class DatasetReport:
    """A whole check."""

    tasks: list[TaskReport]
    personas: Mark = OK
    """Of the prompts of the shipped conditions."""
    seconds: float = 0.0
    """Wall time."""
    interrupted: bool = False

    def count(self, state: State) -> int:
        """Marks of a state, the personas' included."""
        marks = [each for task in self.tasks for each in task.marks.values()]
        return sum(each.state == state for each in (*marks, self.personas))

    def document(self) -> Mapping[str, object]:
        """The report for machines."""
        return {
            "tasks": [
                {
                    "name": task.name,
                    "marks": {column: task.mark_of(column).state for column in COLUMNS},
                    "problems": [f"{column}: {line}" for column, line in task.problems()],
                    "seconds": round(task.seconds, 3),
                }
                for task in self.tasks
            ],
            "personas": {"state": self.personas.state, "problems": list(self.personas.lines)},
            "faults": self.count("fault"),
            "broken": self.count("broken"),
            "seconds": round(self.seconds, 3),
            "interrupted": self.interrupted,
        }
