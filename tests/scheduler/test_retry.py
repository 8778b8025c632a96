"""What follows an invalid try."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from scheduler.retry import (
    DEADLY_CAUSES,
    MAX_DELAY_S,
    UNSPENT,
    DeadRetry,
    Next,
    Revival,
    Spent,
    after_invalid,
    delay_s,
    fresh_from,
    may_try,
    spent_by,
)
from workers.contract.outcome import BLAME_OF, RULES, Blame, Cause, Retry, Verdict


class Ended(NamedTuple):
    """How a try ended."""

    blame: Blame
    epoch: tuple[int, int] = (1, 1)
    probe: bool = False


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
    assert spent_by([Ended(blame)]) == spent


def test_tries_add_up() -> None:
    blames = [Blame.HARNESS, Blame.OPERATOR, Blame.TASK, Blame.PROVIDER]
    assert spent_by(map(Ended, blames)) == Spent(3, 1)
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


def test_a_probe_spends_a_try_unless_the_provider_failed_again() -> None:
    spent = [spent_by([Ended(blame, probe=True)]) for blame in (Blame.PROVIDER, Blame.HARNESS)]
    assert spent == [UNSPENT, Spent(1, 0)]


def test_fresh_tries_forgive_those_of_earlier_drivers_and_no_others() -> None:
    tries = [
        Ended(Blame.HARNESS, (1, 4)),
        Ended(Blame.TASK, (2, 1)),
        Ended(Blame.TASK, (2, 9)),
        Ended(Blame.HARNESS, (3, 1)),
        Ended(Blame.TASK, (4, 7)),
    ]
    assert spent_by(tries) == Spent(5, 3)
    assert spent_by(tries, 3) == Spent(2, 1, forgiven=3)
    assert spent_by(tries, 5) == Spent(0, 0, forgiven=5)
    assert spent_by([], 5) == UNSPENT
    assert Spent(2, 1, 3).fresh() == Spent(0, 0, 5)


def test_the_last_revival_of_an_attempt_counts() -> None:
    revivals = [
        Revival(sweep="s", generation=generation, at="", causes=(), attempts=attempts)
        for generation, attempts in ((5, ("a", "b")), (2, ("a", "c")), (9, ("b",)))
    ]
    assert fresh_from(revivals) == {"a": 5, "b": 9, "c": 2}


def test_which_attempts_a_wish_for_fresh_tries_means() -> None:
    dead, alive, once = Spent(3, 0), Spent(2, 1), Spent(2, 2)
    every, some = DeadRetry(), DeadRetry(frozenset({Cause.NODE_LOST}))
    assert every.means(dead, Cause.IMAGE_BUILD, 3)
    assert every.means(once, Cause.VERIFIER_CRASH, 3)
    assert not every.means(alive, Cause.NODE_LOST, 3)
    assert some.means(dead, Cause.NODE_LOST, 3)
    assert not some.means(dead, Cause.IMAGE_BUILD, 3)


def test_deadly_causes_are_those_that_spend_tries() -> None:
    for cause in Cause:
        rule = RULES[BLAME_OF[cause]]
        spends = rule.verdict is Verdict.INVALID and rule.retry is not Retry.ON_RESUME
        assert (cause in DEADLY_CAUSES) == spends
