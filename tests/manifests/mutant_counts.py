"""How many mutants of each task's accepted transcript are judged, and how many are accepted.

``python -m tests.manifests.mutant_counts`` prints a table; every mutant that is accepted is one
that the plain rules of ``task_oracle`` accept too, or this ends with an error.
"""

from __future__ import annotations

from tests.manifests import task_oracle
from tests.manifests.task_mutants import every_mutant
from tests.manifests.task_transcripts import accepted
from tests.manifests.task_verifiers import NAMES, judge


def counts(task: str) -> tuple[int, int]:
    """(tried, accepted) of a task."""
    tried = passed = 0
    for name, mutant in every_mutant(accepted(task)):
        scores = judge(task, mutant)
        assert scores == task_oracle.judge(task, mutant), f"{task}: {name}"
        tried += 1
        passed += scores["reward"] == 1.0
    return tried, passed


if __name__ == "__main__":
    total = [0, 0]
    for each in NAMES:
        found = counts(each)
        total = [total[0] + found[0], total[1] + found[1]]
        print(f"{each:36}{found[0]:6} tried {found[1]:5} accepted")  # noqa: T201
    print(f"{'all':36}{total[0]:6} tried {total[1]:5} accepted")  # noqa: T201
