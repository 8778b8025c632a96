"""Ctrl-C while a sweep runs, and going on afterwards."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from tests.flow.sweeps import DEMO, apiary, left_in_docker

pytestmark = [pytest.mark.docker, pytest.mark.ray]

NOTHING = {"containers": [], "volumes": [], "networks": []}
ARGUMENTS = ("run", str(DEMO), "-k", "1", "-n", "2", "-x", "memory-*")


class Presser:
    """Signals once a number of trials has ended, and again as often as is asked."""

    def __init__(self, after: int, times: int, number: int = signal.SIGINT) -> None:
        self.after, self.times, self.number = after, times, number
        self.ended = 0

    def __call__(self, event: dict[str, Any], pid: int) -> None:
        self.ended += event["event"] == "try"
        busy = event["event"] == "progress" and sum(c["running"] for c in event["conditions"])
        if self.ended >= self.after and busy and self.times > 0:
            os.kill(pid, self.number)
            self.times -= 1


def test_one_ctrl_c_lets_running_trials_finish_and_resume_does_the_rest(tmp_path: Path) -> None:
    stopped = apiary(tmp_path, *ARGUMENTS, on_event=Presser(after=1, times=1))
    assert stopped.code == 130
    assert stopped.events[-1]["state"] == "interrupted"
    done = {result["attempt"]: result for result in stopped.results}
    assert 1 <= len(done) < 9
    assert len(stopped.tries()) == len(done), "a running trial was not let finish"
    assert left_in_docker(stopped.sweep) == NOTHING

    resumed = apiary(tmp_path, "resume", "latest")
    assert resumed.code == 0
    assert resumed.sweep == stopped.sweep
    after = {result["attempt"]: result for result in resumed.results}
    assert len(after) == 9
    assert {attempt: after[attempt] for attempt in done} == done
    assert left_in_docker(resumed.sweep) == NOTHING


def test_a_second_ctrl_c_ends_running_trials_and_nothing_of_them_is_left(tmp_path: Path) -> None:
    stopped = apiary(tmp_path, *ARGUMENTS, on_event=Presser(after=0, times=2))
    assert stopped.code == 130
    assert left_in_docker(stopped.sweep) == NOTHING
    ended = [event for event in stopped.events if event["event"] == "try"]
    assert "cancelled" in {event["cause"] for event in ended}
    assert stopped.summary["conditions"][0]["rates"]["coverage"] < 1.0


def test_sigterm_lets_running_trials_finish_too(tmp_path: Path) -> None:
    stopped = apiary(
        tmp_path, *ARGUMENTS, on_event=Presser(after=0, times=1, number=signal.SIGTERM)
    )
    assert stopped.code == 130
    assert stopped.events[-1]["state"] == "interrupted"
    assert {result["verdict"] for result in stopped.results} <= {"pass", "fail"}
    assert len(stopped.tries()) == len(stopped.results)
    assert left_in_docker(stopped.sweep) == NOTHING
    assert "SIGTERM" not in stopped.errors
    assert not list((tmp_path / ".apiary" / "node" / "trials").iterdir())


def test_what_a_killed_driver_left_goes_by_reap_and_its_sweep_goes_on(tmp_path: Path) -> None:
    killed = apiary(tmp_path, *ARGUMENTS, on_event=Presser(after=0, times=1, number=signal.SIGKILL))
    assert killed.code == -signal.SIGKILL
    give_up = time.monotonic() + 60.0
    # What belongs to a node is left alone until the node has seen that its driver is gone.
    trials = tmp_path / ".apiary" / "node" / "trials"
    while (left_in_docker(killed.sweep) != NOTHING or list(trials.glob("*"))) and (
        time.monotonic() < give_up
    ):
        assert apiary(tmp_path, "reap").code == 0
    assert left_in_docker(killed.sweep) == NOTHING
    assert not list(trials.glob("*"))
    resumed = apiary(tmp_path, "resume", "latest")
    assert resumed.code == 0
    assert len(resumed.results) == 9
    assert left_in_docker(killed.sweep) == NOTHING
