"""An endpoint goes down and comes back; in virtual time."""

from __future__ import annotations

import pytest

from tests.scheduler.permits.outage import FALLS_S, RISES_S, tell

pytestmark = pytest.mark.long


@pytest.mark.parametrize("slots", [20, 1])
def test_its_cells_are_parked_within_30_s_and_go_on_without_help(slots: int) -> None:
    told = tell(k=200 if slots > 1 else 80, slots=slots)
    assert len(told.parked_at) == len(told.back_at) == 1
    assert FALLS_S < told.parked_at[0] <= FALLS_S + 30.0
    # A probe a minute, and a request's time.
    assert RISES_S < told.back_at[0] <= RISES_S + 90.0
    assert told.leased_while_parked <= 4
    assert told.state == "settled"


def test_the_other_endpoint_loses_no_throughput() -> None:
    assert tell(k=400).other_ratio >= 1.0


def test_one_node_without_network_parks_no_endpoint() -> None:
    told = tell(
        k=200,
        down=lambda _: False,
        cut_off=lambda node, second: node == "n1" and FALLS_S <= second < RISES_S,
    )
    assert told.parked_at == ()
    assert any("node n1: gets only probes" in note for note in told.notes)
    assert told.state == "settled"


def test_one_agent_in_ten_asks_wrongly_and_nothing_is_parked() -> None:
    told = tell(k=60, down=lambda _: False, bad_agents=True)
    assert told.notes == ()
    assert told.lost_tries == 0
