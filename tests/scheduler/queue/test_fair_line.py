"""The order in which attempts are leased."""

from __future__ import annotations

from scheduler.queue.attempts import Attempt, Cell, Condition
from scheduler.queue.fair_line import FairLine
from scheduler.queue.states import State
from scheduler.retry import UNSPENT


def cell(name: str) -> Cell:
    return Cell(name, Condition(name))


def attempts(home: Cell, count: int) -> list[Attempt]:
    return [Attempt(f"{home.cell}{n}", n, home, UNSPENT) for n in range(count)]


def drain(line: FairLine, now: float = 0.0) -> list[str]:
    taken = []
    while (attempt := line.pop(now)) is not None:
        attempt.state = State.LEASED
        taken.append(attempt.attempt)
    return taken


def test_conditions_take_turns_whatever_their_sizes() -> None:
    line = FairLine()
    for attempt in [*attempts(cell("a"), 4), *attempts(cell("b"), 2), *attempts(cell("c"), 1)]:
        line.push(attempt)
    assert drain(line) == ["a0", "b0", "c0", "a1", "b1", "a2", "a3"]


def test_one_that_is_put_first_is_first_of_its_condition_only() -> None:
    line = FairLine()
    a, b = attempts(cell("a"), 3), attempts(cell("b"), 1)
    for attempt in (*a[:2], *b):
        line.push(attempt)
    line.push(a[2], first=True)
    assert drain(line) == ["a2", "b0", "a0", "a1"]


def test_what_left_planned_by_another_way_is_skipped() -> None:
    line = FairLine()
    a, b = attempts(cell("a"), 3), attempts(cell("b"), 2)
    for attempt in (*a, *b):
        line.push(attempt)
    for gone in (a[0], a[2], *b):
        gone.state = State.DEAD
    assert drain(line) == ["a1"]


def test_a_delayed_attempt_comes_when_it_is_due() -> None:
    line = FairLine()
    home = cell("a")
    first, second, third = attempts(home, 3)
    line.delay(second, until=20.0)
    line.delay(first, until=10.0)
    line.push(third)
    assert line.next_due() == 10.0
    assert drain(line, now=9.9) == ["a2"]
    assert drain(line, now=10.0) == ["a0"]
    assert line.next_due() == 20.0
    second.state = State.DEAD
    assert drain(line, now=20.0) == []
    assert line.next_due() is None


def test_two_that_are_due_at_once_come_in_the_order_in_which_they_were_delayed() -> None:
    line = FairLine()
    for attempt in attempts(cell("a"), 5):
        line.delay(attempt, until=1.0)
    assert drain(line, now=1.0) == ["a0", "a1", "a2", "a3", "a4"]
