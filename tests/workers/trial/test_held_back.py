"""An agent whose requests waited for a provider's turn."""

from __future__ import annotations

import pytest

from tests.workers.trial.test_decide import collected, driven, frozen, line
from workers.contract.outcome import Cause
from workers.gateway import CallResult, LedgerLine
from workers.trial.decide import before_verification
from workers.trial.handoff import Ending
from workers.trial.held_back import held_back_s


def waited(number: int, start_s: float, held_s: float, answer_s: float) -> LedgerLine:
    """A request that was held back and then answered."""
    made = line(number, CallResult.OK, start_s, held_s + answer_s)
    return made.model_copy(update={"held_s": held_s, "waited_s": held_s})


def test_time_counts_once_and_within_the_agents_time() -> None:
    lines = (waited(1, 0.0, 10.0, 1.0), waited(2, 5.0, 10.0, 1.0), waited(3, 90.0, 50.0, 1.0))
    # 2 to 15, but for the second in which the first was answered, and 90 to 100.
    assert held_back_s(lines, 2.0, 100.0) == pytest.approx(13.0 - 1.0 + 10.0)


def test_what_an_agent_waits_for_beside_its_own_requests_does_not_count() -> None:
    lines = (waited(1, 0.0, 0.0, 100.0), *(waited(n, 0.0, 90.0, 1.0) for n in range(2, 50)))
    assert held_back_s(lines, 0.0, 100.0) == 0.0


@pytest.mark.parametrize(
    ("ending", "held_s", "cause"),
    [
        (Ending.TIMEOUT, 40.0, Cause.RATE_LIMITED),
        (Ending.TIMEOUT, 20.0, None),
        # It came to an end of its own: waiting alone kept it from nothing.
        (Ending.TURN_ENDED, 40.0, None),
    ],
)
def test_a_deadline_is_the_providers_where_waiting_took_more_than_half(
    ending: Ending, held_s: float, cause: Cause | None
) -> None:
    ledger = tuple(waited(n, 1.0 + 60.0 * n, held_s, 5.0) for n in range(5))
    outcome = before_verification(driven(ending, 300.0), frozen(), collected(*ledger), "solo-1")
    assert (outcome and outcome.cause) is cause
    if outcome is not None:
        assert outcome.provider is not None
        assert outcome.provider.share == pytest.approx(5 * held_s / 300.0, abs=1e-3)


def test_a_slow_upload_is_no_waiting() -> None:
    slow = line(1, CallResult.OK, 1.0, 290.0).model_copy(update={"waited_s": 280.0})
    outcome = before_verification(
        driven(Ending.TIMEOUT, 300.0), frozen(), collected(slow), "solo-1"
    )
    assert outcome is None
