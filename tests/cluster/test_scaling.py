"""A cluster that grows to what a sweep needs, loses a machine, and shrinks again, on a real Ray."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.cluster.autoscaled import Autoscaled, autoscaled, parent_of
from tests.scheduler.builders import attempts, cells
from tests.scheduler.ray_runs import Run, assert_each_counted_once, wait_for

pytestmark = [pytest.mark.ray, pytest.mark.alone]

MOST = 3
SLOTS = 4
"""Of each node."""
EACH = 7
"""Attempts of each of four cells."""


@pytest.fixture
def cluster() -> Iterator[Autoscaled]:
    with autoscaled(MOST) as made:
        yield made


def test_machines_come_as_they_are_needed_and_go_when_nothing_runs_on_them(
    cluster: Autoscaled, tmp_path: Path
) -> None:
    # Trials take longer than a machine may be idle: one with trials is never seen as idle.
    (tmp_path / "trial_s").write_text("5")
    longest = attempts(cells(conditions=2, tasks=2), EACH)[0].attempt
    (tmp_path / f"trial_s-{longest}").write_text("35")
    limits = {"MAX_NODES": str(MOST), "LEASE_TERM_S": "10"}
    assert not cluster.raylets()
    run = Run(tmp_path, EACH, cluster.address, **cluster.environment, **limits)
    try:
        running = _while(run)
        running(lambda: len({pid for _, _, pid in run.starts()}) == MOST)
        # A machine that is taken away in mid trial is the harness's loss, and is replaced.
        keeps = next(pid for attempt, _, pid in run.starts() if attempt == longest)
        actor = [pid for _, _, pid in run.starts() if pid != keeps][-1]
        before = set(cluster.raylets())
        for pid in (parent_of(actor), actor):
            os.kill(pid, signal.SIGKILL)
        running(lambda: bool(set(cluster.raylets()) - before))
        # While the longest trial runs on, the others have nothing to do, and go.
        running(lambda: len(cluster.raylets()) == 1)
        assert parent_of(keeps) in cluster.raylets().values()
        outcome = run.wait()
        assert outcome["state"] == "settled", outcome
        assert_each_counted_once(run, outcome)
        invalid = [cause for cause, _ in outcome["records"] if cause != "none"]
        assert 1 <= len(invalid) <= SLOTS
        assert set(invalid) <= {"node_lost", "lease_expired"}
        assert sum("is lost" in note for note in outcome["notes"]) == 1
        assert sum("is given back" in note for note in outcome["notes"]) == MOST - 1
        assert len([a for a, _, _ in run.starts() if a == longest]) == 1
        # The driver has ended its actors and asks for nothing any more.
        wait_for(lambda: not cluster.raylets())
        assert cluster.actors() == []
    finally:
        run.end()


def _while(run: Run) -> Callable[[Callable[[], bool]], None]:
    """Waits for what is to come true while the sweep runs."""

    def wait(condition: Callable[[], bool]) -> None:
        def holds() -> bool:
            assert run.process.poll() is None, run.terminal()
            return condition()

        wait_for(holds)

    return wait
