"""The partition run: a sweep over several machines, one of which is cut off, by Ray's own figures.

As a program it prints what happened when, and what became of the sweep. It takes some minutes, so
CI runs the same with two machines and a cluster that gives up sooner.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass

from tests.cluster.machine import Machine
from tests.cluster.sweep import ClusterSweep, cluster_sweep
from tests.cluster.world import ClusterWorld, cluster_world
from tests.faults.table import shown

LIMITS = {"lease_term_s": 60.0, "seal_s": 120.0, "teardown_s": 60.0}
"""As a sweep has them by default."""
LOST = "is lost"


@dataclass
class Seen:
    """One cut; seconds since it began, null: it did not happen."""

    cut_s: float
    told_lost_s: float | None = None
    """The driver told its user."""
    raylet_ended_s: float | None = None
    """Ray ended on the machine."""
    joined_s: float | None = None
    """Ray had been started there again, and a new node opened."""
    worked_s: float | None = None
    """A trial of the sweep ran there again."""
    ended_s: float = 0.0
    """The sweep was over."""


def cut_off(here: ClusterSweep, machine: Machine, seconds: float) -> Seen:
    """Cuts a machine off for a time while a sweep runs, and follows the sweep to its end."""
    before, raylets = set(machine.actors()), set(machine.raylets())
    began, seen = time.monotonic(), Seen(seconds)
    machine.cut()
    is_cut = True

    def look() -> bool:
        nonlocal is_cut
        since = round(time.monotonic() - began, 1)
        if is_cut and since >= seconds:
            machine.heal()
            is_cut = False
        new = set(machine.actors()) - before
        for name, holds in (
            (
                "told_lost_s",
                lambda: any(machine.name in n and LOST in n for n in here.last.notes()),
            ),
            ("raylet_ended_s", lambda: not raylets & set(machine.raylets())),
            ("joined_s", lambda: bool(new)),
            ("worked_s", lambda: not is_cut and bool(new) and here.runs_on(machine.name)),
        ):
            if getattr(seen, name) is None and holds():
                setattr(seen, name, since)
        seen.ended_s = since
        return here.last.code is not None and not is_cut

    try:
        patiently(here, "the sweep's end", look)
    finally:
        machine.heal()
    return seen


def patiently(here: ClusterSweep, what: str, condition: Callable[[], bool]) -> None:
    """Waits as long as it takes, within reason."""
    here.until(what, condition, within_s=1800.0)


def run(world: ClusterWorld, name: str, attempts: int, seconds: float) -> tuple[Seen, str]:
    """One sweep with one cut; what was seen, and the row of the table of faults."""
    machines = list(world.machines.values())
    with cluster_sweep(world, name, attempts=attempts, slots=1, **LIMITS) as here:
        patiently(here, "trials everywhere", lambda: all(here.runs_on(m.name) for m in machines))
        seen = cut_off(here, machines[-1], seconds)
        assert here.last.code == 0, here.last.end
        causes = dict(here.causes())
        return seen, shown([here.row(f"cut off for {seconds:g} s")]) + f"\ntries lost: {causes}"


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=4)
    parser.add_argument("--partition", type=float, default=120.0)
    parser.add_argument("--attempts", type=int, default=44)
    given = parser.parse_args()
    with cluster_world({}) as world:
        for machine in world.start(*(f"node-{number + 1}" for number in range(given.nodes))):
            world.join(machine)
        told = []
        for name, attempts, seconds in (
            ("short-cut", given.attempts // 2, 20.0),
            ("long-cut", given.attempts, given.partition),
        ):
            seen, row = run(world, name, attempts // 2, seconds)
            told.append(f"{row}\nseconds after the cut: {asdict(seen)}")
    sys.stdout.write("\n\n".join(told) + "\n")


if __name__ == "__main__":
    main()
