"""What follows an invalid try."""

from __future__ import annotations

import pytest

from scheduler.retry import (
    MAX_DELAY_S,
    UNSPENT,
    Next,
    Spent,
    after_invalid,
    delay_s,
    may_try,
    spent_by,
)
from workers.contract.outcome import Blame


@pytest.mark.parametrize(
    ("blame", "spent"),
    [
        (Blame.HARNESS, Spent(1, 0)),
        (Blame.PROVIDER, Spent(1, 0)),
        (Blame.TASK, Spent(1, 1)),
        (Blame.UNCLASSIFIED, Spent(1, 1)),
        (Blame.OPERATOR, Spent(0, 0)),
    ],
)
def test_what_a_try_spends(blame: Blame, spent: Spent) -> None:
    assert UNSPENT.after(blame) == spent
    assert spent_by([blame]) == spent


def test_tries_add_up() -> None:
    blames = [Blame.HARNESS, Blame.OPERATOR, Blame.TASK, Blame.PROVIDER]
    assert spent_by(blames) == Spent(3, 1)
    assert spent_by([]) == UNSPENT


@pytest.mark.parametrize("blame", [Blame.HARNESS, Blame.PROVIDER])
def test_whole_tries_up_to_the_limit(blame: Blame) -> None:
    spent, path = UNSPENT, []
    for _ in range(3):
        spent = spent.after(blame)
        path.append(after_invalid(spent, blame, 3))
    assert path == [Next.AGAIN, Next.AGAIN, Next.GIVE_UP]


@pytest.mark.parametrize("blame", [Blame.TASK, Blame.UNCLASSIFIED])
def test_one_more_whole_try_and_no_third(blame: Blame) -> None:
    once = UNSPENT.after(blame)
    assert after_invalid(once, blame, 9) is Next.AGAIN
    assert after_invalid(once.after(blame), blame, 9) is Next.GIVE_UP


def test_the_limit_bounds_those_too() -> None:
    assert after_invalid(UNSPENT.after(Blame.TASK), Blame.TASK, 1) is Next.GIVE_UP


def test_the_operators_doing_waits_for_the_operator() -> None:
    assert after_invalid(Spent(2, 0), Blame.OPERATOR, 3) is Next.ON_RESUME


def test_may_try() -> None:
    assert may_try(UNSPENT, 1)
    assert not may_try(Spent(1, 0), 1)
    assert not may_try(Spent(2, 2), 9)


def test_back_off_doubles_and_is_bounded() -> None:
    delays = [delay_s(Spent(tries, 0), Blame.PROVIDER) for tries in range(1, 7)]
    assert delays == [5.0, 10.0, 20.0, 40.0, MAX_DELAY_S, MAX_DELAY_S]
    assert delay_s(Spent(1, 1), Blame.TASK) == 0.0
