"""A sweep of simulated trials on a real Ray, as a process of its own.

Its terminal, its processes and what signals do to it are looked at from outside. The end of
the sweep and what the observer heard go to the file ``outcome.json`` in the folder given.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import time
import urllib.request
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from scheduler.cluster import Cluster
from scheduler.driver import drive
from scheduler.errors import ClusterError
from scheduler.manifest import SweepBudget
from scheduler.stop import StopSignal
from scheduler.view import SweepView
from tests.scheduler.builders import Planned, attempts, cells, limits, sweep_spec
from tests.scheduler.fake_nodes import FakeNodeActor
from workers.contract.result import TryRecord
from workers.contract.spec import CellSpec, SweepSpec


@dataclass(frozen=True)
class SmallPlan:
    """Two tasks under two conditions."""

    spec: SweepSpec
    cells: tuple[CellSpec, ...]
    attempts: list[Planned]
    budget: SweepBudget = field(default_factory=SweepBudget)


class Heard:
    """Keeps what it is told, and leaves a mark once a trial runs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.started = time.monotonic()
        self.first_lease_s: float | None = None
        self.records: list[TryRecord] = []
        self.notes: list[str] = []
        self.slots: dict[str, float] = {}
        """Of every node that serves metrics, as these say."""

    def moved(self, view: SweepView) -> None:
        for each in view.node_views:
            if each.metrics and each.node not in self.slots:
                self.slots[each.node] = _slots(each.metrics)
        if self.first_lease_s is None and any(each.running for each in view.conditions):
            self.first_lease_s = time.monotonic() - self.started
            (self.folder / "running").touch()

    def ended(self, ended: TryRecord) -> None:
        self.records.append(ended)

    def note(self, text: str) -> None:
        self.notes.append(text)
        with (self.folder / "notes").open("a") as notes:
            notes.write(f"{text}\n")


def _slots(address: str) -> float:
    with urllib.request.urlopen(f"http://{address}/metrics", timeout=20) as answer:
        text = answer.read().decode()
    (line,) = (line for line in text.splitlines() if line.startswith("apiary_slots "))
    return float(line.split()[1])


def main(folder: Path, count: int, address: str | None) -> None:
    """Runs ``count`` attempts of each cell.

    ``LEASE_TERM_S`` and ``ORPHAN_S`` of the environment change its limits, ``MAX_CALLS`` is its
    budget; ``MAX_NODES`` may be asked of the cluster; ``OUTCOME`` is another name for the file of
    its outcome.
    """
    store = f"file://{folder / 'store'}"
    made = cells(conditions=2, tasks=2)
    changed = limits(
        lease_term_s=float(os.environ.get("LEASE_TERM_S", "20")),
        orphan_s=float(os.environ.get("ORPHAN_S", "3600")),
        teardown_s=5.0,
    )
    spec = sweep_spec(store=store, limits=changed)
    limit = os.environ.get("MAX_CALLS")
    budget = SweepBudget(max_calls=None if limit is None else int(limit))
    plan = SmallPlan(spec, tuple(made.values()), attempts(made, count), budget)
    nodes = os.environ.get("MAX_NODES")
    heard, stop = Heard(folder), StopSignal()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.request())
    try:
        end = asyncio.run(
            drive(
                plan,
                store,
                n_concurrent=4,
                ray_address=address,
                observer=heard,
                stop=stop,
                home=folder / "home",
                max_nodes=None if nodes is None else int(nodes),
                open_nodes=partial(Cluster, actor_class=FakeNodeActor),
            )
        )
        state, reason = str(end.state), end.reason
    except ClusterError as error:
        state, reason = "refused", str(error)
    outcome = {
        "state": state,
        "reason": reason,
        "records": [(each.cause.value, each.node) for each in heard.records],
        "tries": [(each.attempt, each.try_, each.verdict.value) for each in heard.records],
        "skews": [each.clock_skew_s for each in heard.records],
        "notes": heard.notes,
        "slots": heard.slots,
        "first_lease_s": heard.first_lease_s,
        "seconds": time.monotonic() - heard.started,
    }
    name = os.environ.get("OUTCOME", "outcome.json")
    (folder / f"{name}.new").write_text(json.dumps(outcome))
    (folder / f"{name}.new").rename(folder / name)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3] if len(sys.argv) > 3 else None)
