"""Slots of a node."""

from __future__ import annotations

import pytest

from tests.scheduler.builders import limits
from workers.admission import refusal, slots


@pytest.mark.parametrize(
    ("cores", "memory_mb", "task_memory_mb", "expected"),
    [
        (2, 24_000, 1024, 8),
        (2, 2_048, 1024, 4),
        (8, 4_096, 4096, 2),
        (1, 256, 4096, 1),
    ],
    ids=["by cores", "by memory", "large tasks", "at least one"],
)
def test_slots_by_cores_bounded_by_memory(
    cores: int, memory_mb: int, task_memory_mb: int, expected: int
) -> None:
    found = slots(
        limits(),
        n_concurrent=None,
        cores=cores,
        memory_mb=memory_mb,
        task_memory_mb=task_memory_mb,
    )
    assert found == expected


def test_what_the_operator_asks_for_is_honoured() -> None:
    found = slots(limits(), n_concurrent=37, cores=1, memory_mb=1, task_memory_mb=4096)
    assert found == 37


def test_the_factors_are_the_sweeps() -> None:
    changed = limits(cpu_overcommit=1.5, memory_overcommit=1.0)
    found = slots(changed, n_concurrent=None, cores=4, memory_mb=5_000, task_memory_mb=1_000)
    assert found == 5


def test_a_full_disk_refuses_and_says_so() -> None:
    assert refusal(limits(disk_free_mb=100), disk_free_mb=100) == ""
    assert "99 MB free" in refusal(limits(disk_free_mb=100), disk_free_mb=99)
