"""The order in which attempts are leased."""

from __future__ import annotations

from scheduler.queue.attempts import Attempt, Cell, Condition, Line
from scheduler.queue.fair_line import FairLine, take
from scheduler.queue.states import State
from scheduler.retry import UNSPENT


def cell(name: str) -> Cell:
    return Cell(name, Line(Condition(name)))


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


def test_a_parked_line_has_no_turn_until_it_is_resumed() -> None:
    line = FairLine()
    a, b = attempts(cell("a"), 2), attempts(cell("b"), 1)
    for attempt in (*a, *b):
        line.push(attempt)
    home = a[0].cell.line
    home.parked_by = 1
    assert drain(line) == ["b0"]
    line.push(attempts(a[0].cell, 3)[2])
    line.resume(home)
    assert drain(line) == []
    home.parked_by = 0
    line.resume(home)
    line.resume(home)
    assert drain(line) == ["a0", "a1", "a2"]


def test_the_lines_of_one_condition_share_its_turn() -> None:
    line = FairLine()
    group = Condition("a")
    first, second = Cell("x", Line(group)), Cell("y", Line(group))
    for attempt in (*attempts(first, 2), *attempts(second, 2), *attempts(cell("b"), 4)):
        line.push(attempt)
    assert drain(line) == ["x0", "b0", "y0", "b1", "x1", "b2", "y1", "b3"]


def test_the_next_of_a_parked_line_can_be_taken_out() -> None:
    line = FairLine()
    a = attempts(cell("a"), 3)
    for attempt in a:
        line.push(attempt)
    home = a[0].cell.line
    home.parked_by = 1
    a[0].state = State.DEAD
    taken = take(home)
    assert taken is a[1]
    taken.state = State.LEASED
    home.parked_by = 0
    assert drain(line) == ["a2"]
    assert take(home) is None


def test_what_is_removed_is_nowhere() -> None:
    line = FairLine()
    a, b = attempts(cell("a"), 3), attempts(cell("b"), 2)
    for attempt in (*a[:2], b[0]):
        line.push(attempt)
    line.delay(a[2], until=1.0)
    line.delay(b[1], until=2.0)
    line.remove({a[0], a[2], b[0]})
    assert drain(line, now=5.0) == ["a1", "b1"]


def test_canaries_come_once_in_so_many_attempts_the_first_before_all() -> None:
    line = FairLine()
    canary = Cell("c", Line(Condition("c", every=4)))
    for attempt in (*attempts(canary, 3), *attempts(cell("a"), 5), *attempts(cell("b"), 5)):
        line.push(attempt)
    assert drain(line) == [
        "c0", "a0", "b0", "a1", "b1", "c1", "a2", "b2", "a3", "b3", "c2", "a4", "b4",
    ]  # fmt: skip


def test_canaries_that_are_left_come_after_all_others() -> None:
    line = FairLine()
    canary = Cell("c", Line(Condition("c", every=50)))
    for attempt in (*attempts(canary, 3), *attempts(cell("a"), 2)):
        line.push(attempt)
    assert drain(line) == ["c0", "a0", "a1", "c1", "c2"]


def test_a_canary_that_waits_holds_nobody_up() -> None:
    line = FairLine()
    canary = Cell("c", Line(Condition("c", every=2)))
    waiting, own = attempts(canary, 2), attempts(cell("a"), 4)
    for attempt in (*waiting, *own):
        line.push(attempt)
    waiting[0].cell.line.parked_by = 1
    assert drain(line) == ["a0", "a1", "a2", "a3"]
    waiting[0].cell.line.parked_by = 0
    line.resume(waiting[0].cell.line)
    assert drain(line) == ["c0", "c1"]
