"""The queue against its slow twin, on random histories."""

from __future__ import annotations

import sys
import time
from collections import Counter

import pytest

from tests.scheduler.queue.histories import ACTIONS, History
from tests.scheduler.queue.history_runs import (
    assert_no_failure,
    failure,
    random_history,
    smallest,
)

MANY = 10_000


def test_some_histories() -> None:
    for seed in range(25):
        assert_no_failure(seed)


@pytest.mark.long
def test_ten_thousand_histories(capsys: pytest.CaptureFixture[str]) -> None:
    started, used = time.monotonic(), time.process_time()
    for seed in range(100, 100 + MANY):
        assert_no_failure(seed)
    with capsys.disabled():
        took, used = time.monotonic() - started, time.process_time() - used
        sys.stdout.write(f"\n{MANY} histories in {took:.0f} s, {used:.0f} of them on a core\n")


@pytest.mark.long
def test_histories_see_what_they_are_for() -> None:
    seen: Counter[str] = Counter()
    for seed in range(400):
        history = History()
        for step in random_history(seed):
            history.run([step])
            seen.update({row.state for row in history.twin.rows})
            seen["poisoned"] += bool(history.queue.poisoned)
            seen["waits"] += bool(history.queue.waiting_for_endpoints())
            seen["revived"] += any(r.attempts for r in history.store.revivals)
            seen["probe"] += any(r.probe for r in history.store.tries.values())
            for change in history.queue.breaker_changes:
                seen[f"{change.kind} {'opened' if change.opened else 'closed'}"] += 1
    expected = ("planned", "leased", "running", "lost", "committed", "dead", "parked", "poisoned")
    changes = ("node opened", "node closed", "endpoint opened", "endpoint closed")
    for what in (*expected, *changes, "waits", "revived", "probe"):
        assert seen[what] > 0, (what, seen)


def test_a_history_that_fails_is_made_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scheduler.queue.work_queue.WorkQueue.expire", lambda self, now: [])
    failing = next(
        steps for seed in range(100) if failure(steps := random_history(seed)) is not None
    )
    small = smallest(failing)
    names = [ACTIONS[step[0] % len(ACTIONS)].__name__ for step in small]
    assert names[-1] == "expire"
    assert len(small) <= 6
