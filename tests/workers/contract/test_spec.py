from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.scheduler.builders import cell_spec
from workers.contract.spec import CellSpec, Epoch, Lease, attempt_id, cell_id
from workers.contract.task import Fixture

C, T = "c" * 64, "d" * 64


def test_ids_are_known_and_never_change() -> None:
    assert cell_id(C, T) == "0e199c27f98e29a4"
    assert attempt_id("s-20260830T120000Z", C, T, 0) == "e24423484f3f4e5cef0527275f6dd7be"


ONE = st.sampled_from("ab")
PARTS = st.tuples(ONE, ONE, ONE, st.integers(0, 12))


@given(st.lists(PARTS, min_size=2, max_size=2, unique=True))
def test_whatever_differs_gives_another_attempt(parts: list[tuple[str, str, str, int]]) -> None:
    first, second = (attempt_id(*part) for part in parts)
    assert first != second
    assert len(first) == 32


@given(st.integers(0), st.integers(0))
def test_an_epoch_is_the_name_of_its_try(generation: int, counter: int) -> None:
    epoch = Epoch(generation, counter)
    assert Epoch.parse(str(epoch)) == epoch


def test_epochs_are_ordered_by_generation_then_counter() -> None:
    assert Epoch(1, 9) < Epoch(2, 1) < Epoch(2, 2)


@pytest.mark.parametrize("text", ["", "1", "1-", "-1", "a-b", "1-2-3"])
def test_what_is_no_epoch_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="invalid literal"):
        Epoch.parse(text)


def test_a_lease_survives_its_wire_form() -> None:
    lease = Lease(attempt="a", index=0, cell="c", epoch=Epoch(1, 2), term_s=60.0)
    again = Lease.from_json(lease.to_json(), "lease")
    assert again == lease
    assert isinstance(again.epoch, Epoch)


def test_who_plays_a_cell_in_place_of_a_model() -> None:
    state = cell_spec()
    with_fixture = state.task.model_copy(update={"fixture": Fixture()})
    judged = state.model_copy(update={"task": with_fixture})

    def canary(cell: CellSpec, kind: str) -> CellSpec:
        return cell.model_copy(update={"canary": kind})

    assert [state.played(agent) for agent in ("reference", "oracle", "nop")] == [
        None, "oracle", "nop"
    ]  # fmt: skip
    assert canary(state, "oracle").played("reference") == "oracle"
    assert canary(state, "nop").played("reference") == "nop"
    assert canary(state, "nop").played("oracle") == "nop"
    # What is graded by a relay's evidence needs somebody on the relay, be it a silent one.
    assert canary(judged, "nop").played("reference") is None
    assert canary(state, "solver").played("oracle") is None
