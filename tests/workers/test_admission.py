"""Room on a node."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.scheduler.builders import cell_spec, limits
from workers.admission import Declared, Room, declared, largest, refusal

SMALL = Declared(1, 1024)


def room(**changes: object) -> Room:
    """A node of two cores and 24 GB for small tasks, less what a test changes."""
    given = {"n_concurrent": None, "cores": 2, "memory_mb": 24_000, "task": SMALL}
    return Room(changes.pop("limits", limits()), **{**given, **changes})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("cores", "memory_mb", "task", "expected"),
    [
        (2, 24_000, SMALL, 8),
        (2, 24_000, Declared(4, 1024), 2),
        (2, 2_048, SMALL, 4),
        (8, 4_096, Declared(1, 4096), 2),
        (1, 256, Declared(16, 4096), 1),
    ],
    ids=["by cores", "wide tasks", "by memory", "large tasks", "at least one"],
)
def test_slots_by_cores_and_memory(
    cores: int, memory_mb: int, task: Declared, expected: int
) -> None:
    assert room(cores=cores, memory_mb=memory_mb, task=task).slots == expected


def test_what_the_operator_says_stands_in_place_of_the_cores_and_not_of_the_memory() -> None:
    assert room(n_concurrent=3).slots == 3
    assert room(n_concurrent=16).slots == 16
    assert room(n_concurrent=400).slots == 46
    assert room(n_concurrent=3).free([SMALL, SMALL]) == 1
    assert room(n_concurrent=3).free([SMALL] * 5) == 0


def test_the_factors_are_the_sweeps() -> None:
    changed = limits(cpu_overcommit=1.5, memory_overcommit=1.0)
    assert room(limits=changed, cores=4, memory_mb=5_000, task=Declared(1, 1_000)).slots == 5


def test_small_tasks_fill_a_node_further_than_large_ones() -> None:
    mixed = room(task=Declared(4, 1024))
    assert mixed.free([]) == 2
    assert mixed.free([Declared(4, 1024)]) == 1
    assert mixed.free([SMALL] * 4) == 1
    assert mixed.free([SMALL] * 5) == 0


@given(
    tasks=st.lists(st.tuples(st.integers(1, 8), st.integers(1, 9_000)), min_size=1, max_size=60),
    cores=st.integers(1, 8),
    memory_mb=st.integers(1, 20_000),
    bound=st.none() | st.integers(1, 20),
    at_once=st.integers(1, 5),
)
def test_whatever_comes_into_free_room_fits(
    tasks: list[tuple[int, int]], cores: int, memory_mb: int, bound: int | None, at_once: int
) -> None:
    wanted = [Declared(*each) for each in tasks]
    most = Declared(max(t.cpus for t in wanted), max(t.memory_mb for t in wanted))
    node = room(n_concurrent=bound, cores=cores, memory_mb=memory_mb, task=most)
    running: list[Declared] = []
    while wanted and (free := node.free(running)):
        coming = min(free, at_once, len(wanted))
        running += [wanted.pop() for _ in range(coming)]
        if len(running) > 1:
            assert bound is not None or sum(each.cpus for each in running) <= cores * 4.0
            assert sum(each.memory_mb for each in running) <= memory_mb * 2.0
            assert bound is None or len(running) <= bound
    assert running


def test_a_declaration_is_the_conditions_word_before_the_tasks() -> None:
    cell = cell_spec()
    assert declared(cell) == (1, 1024)
    document = cell.condition.model_dump() | {"environment": {"override_memory_mb": 99}}
    changed = cell.model_copy(update={"condition": type(cell.condition).model_validate(document)})
    assert declared(changed) == (1, 99)
    assert largest([cell, changed]) == (1, 1024)


def test_a_full_disk_refuses_and_says_so() -> None:
    assert refusal(limits(disk_free_mb=100), disk_free_mb=100) == ""
    assert "99 MB free" in refusal(limits(disk_free_mb=100), disk_free_mb=99)
