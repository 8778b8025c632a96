"""Many trials of one node that only wait; the size that is promised is measured by command."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.long


def test_a_trial_that_waits_costs_little_and_is_looked_at_once_a_second() -> None:
    # In a process of its own: here, memory that other tests freed would be used again.
    ended = subprocess.run(
        [sys.executable, "-m", "tests.workers.trial.crowd", "60", "3"],
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
        cwd=Path(__file__).resolve().parents[3],
    )
    found = json.loads(ended.stdout)
    assert found["passed"] == 61
    assert found["mb_per_trial"] < 1
    # A log that an agent has just begun is looked at a little more often.
    assert found["timers_per_trial_s"] < 0.2
    assert found["puts_per_attempt"] <= 12
