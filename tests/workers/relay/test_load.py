"""What the relay costs, against the bare verification of the same run; nothing absolute."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.workers.relay.load import PAGE, accepting, serving_a_page

pytestmark = pytest.mark.long


def test_accepting_an_event_costs_little_beside_verifying_it() -> None:
    bare, whole = accepting(rounds=6, count=50)
    assert whole < 4 * bare


def test_serving_a_page_costs_less_than_half_of_verifying_it() -> None:
    bare, _ = accepting(rounds=6, count=50)
    assert serving_a_page(rounds=3) < PAGE * bare / 2


def test_two_hundred_idle_trials_take_less_than_200_mb() -> None:
    # In a process of its own: here, memory that other tests freed would be used again.
    program = (
        "import asyncio; from tests.workers.relay.load import idling; "
        "print(asyncio.run(idling(200)))"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).resolve().parents[3],
    )
    assert float(ended.stdout) < 200
