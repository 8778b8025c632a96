"""The table of legal moves."""

from __future__ import annotations

import itertools

import pytest

from scheduler.errors import IllegalMoveError
from scheduler.queue.states import HELD, LEGAL_MOVES, SETTLED, State, check_move


def test_every_state_has_a_row_in_the_table() -> None:
    assert set(LEGAL_MOVES) == set(State)


@pytest.mark.parametrize(("source", "target"), list(itertools.product(State, State)))
def test_a_move_is_legal_exactly_if_the_table_has_it(source: State, target: State) -> None:
    if target in LEGAL_MOVES[source]:
        check_move("a", source, target)
    else:
        with pytest.raises(IllegalMoveError, match=f"from {source} to {target}"):
            check_move("a", source, target)


def test_nothing_leads_out_of_committed() -> None:
    assert not LEGAL_MOVES[State.COMMITTED]


def test_a_commit_may_be_found_in_every_other_state() -> None:
    assert all(State.COMMITTED in LEGAL_MOVES[s] for s in State if s is not State.COMMITTED)


def test_what_is_settled_is_left_only_for_a_commit() -> None:
    for state in SETTLED:
        assert LEGAL_MOVES[state] <= {State.COMMITTED}


def test_only_a_planned_attempt_is_leased_and_only_a_held_one_is_lost() -> None:
    assert [s for s in State if State.LEASED in LEGAL_MOVES[s]] == [State.PLANNED]
    assert {s for s in State if State.LOST in LEGAL_MOVES[s]} == HELD
