"""When a run is complete, told from log lines alone."""

from __future__ import annotations

import pytest

from workers.trial.handoff import Ending
from workers.trial.markers import TurnLog

CHANNEL = "6f1c1b9e-7a3f-4d53-9d53-0d2a0d6f2d11"
ONE, TWO = "1" * 64, "2" * 64
START = f"turn starting for channel {CHANNEL}"
END = f"turn complete for channel {CHANNEL}: end_turn"


def delivered(*ids: str) -> str:
    return f"turn delivered Buzz events for channel {CHANNEL}: {','.join(ids)}"


@pytest.mark.parametrize(
    ("lines", "scripted", "ending"),
    [
        ([], [], None),
        ([START], [], None),
        ([START, END], [], Ending.TURN_ENDED),
        ([f"\x1b[32mINFO\x1b[0m {START}", f"\x1b[2m{END}\x1b[0m"], [], Ending.TURN_ENDED),
        ([START, f"turn refused for channel {CHANNEL}: refusal"], [], Ending.STOPPED),
        ([START, f"turn hit max_tokens for channel {CHANNEL}"], [], Ending.STOPPED),
        ([START, f"turn hit max_turn_requests for channel {CHANNEL}"], [], Ending.STOPPED),
        ([START, f"turn cancelled for channel {CHANNEL}"], [], Ending.TURN_ENDED),
        ([START, f"turn failed for channel {CHANNEL}: 503"], [], Ending.TURN_FAILED),
        ([START, END], [ONE], None),
        ([START, END, delivered(ONE)], [ONE], Ending.TURN_ENDED),
        ([START, END, delivered(ONE)], [ONE, TWO], None),
        ([START, END, delivered(ONE), START], [ONE], None),
        ([START, END, delivered(ONE), START, END, delivered(TWO)], [ONE, TWO], Ending.TURN_ENDED),
        (
            [
                START,
                f"non-cancelling steer ack received event_id={TWO} ack=Ok(Success {{ }})",
                END,
                delivered(ONE),
            ],
            [ONE, TWO],
            Ending.TURN_ENDED,
        ),
        (
            [START, f"non-cancelling steer ack received event_id={TWO} ack=Err(x)", END],
            [TWO],
            None,
        ),
        (
            [START, f"turn refused for channel {CHANNEL}: refusal", START, END],
            [],
            Ending.TURN_ENDED,
        ),
    ],
)
def test_a_run_ends_as_its_log_says(
    lines: list[str], scripted: list[str], ending: Ending | None
) -> None:
    log = TurnLog()
    log.read(lines)
    assert log.ending(scripted) is ending
