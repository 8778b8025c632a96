"""``bench docker``: trials of a Harbor task by its own solution, against Docker's bare loop.

By turns, so that both meet the same machine: a sweep, the bare loop, and so on.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass, field

from scheduler.bench.bare import WHAT, BareLoop
from scheduler.bench.figure import Figure
from scheduler.bench.harbor_task import write_task
from scheduler.bench.machine import core_seconds
from scheduler.bench.peer import Harbor, PeerRun
from scheduler.bench.timed_sweeps import TimedSweep, TimedSweeps

Say = Callable[[str], None]


@dataclass
class _Seen:
    """The samples of all rounds; containers have a network only beside the peer's."""

    sweeps: list[TimedSweep] = field(default_factory=list)
    bare_s: list[float] = field(default_factory=list)
    bare_core_s: list[float] = field(default_factory=list)
    beside: list[TimedSweep] = field(default_factory=list)
    peers: list[PeerRun] = field(default_factory=list)


def measure_harbor_trials(
    sweeps: TimedSweeps,
    *,
    attempts: int,
    parallel: int,
    rounds: int,
    starts_per_s: float | None,
    peer: str | None,
    say: Say,
) -> list[Figure]:
    """Runs sweep, bare loop and, if asked for, the peer, so many rounds.

    Args:
        sweeps: where sweeps run.
        attempts: of each sweep, turns of each bare loop, and trials of the peer.
        parallel: at once, of each.
        rounds: how often.
        starts_per_s: what the node may start a second; null: any number.
        peer: Harbor's program; null: it is not measured.
        say: hears how far it is.

    Raises:
        BenchError: something of it could not be measured.
        ContainerError: the engine refused the bare loop.
    """
    tasks = sweeps.folder / "tasks"
    write_task(tasks, sweeps.base_image)
    sweep = {"tasks": {"path": str(tasks)}, "agent": "oracle"}
    with_network = {**sweep, "network": "declared"}
    harbor = Harbor(peer, sweeps.folder, sweeps.outside) if peer else None
    seen = _Seen()
    with BareLoop(sweeps.base_image, parallel) as bare:
        # The first trial of a task builds its image, which is no part of a trial.
        sweeps.run(sweep, 1, 1)
        if harbor:
            say(f"beside Harbor {harbor.version}")
        for number in range(1, rounds + 1):
            done = sweeps.run(sweep, attempts, parallel, starts_per_s)
            seen.sweeps.append(done)
            before = core_seconds()
            seen.bare_s.append(bare.seconds(attempts, parallel))
            seen.bare_core_s.append((core_seconds() - before) / attempts)
            told = f"{done.per_s:.2f} trials/s, bare loop {attempts / seen.bare_s[-1]:.2f}/s"
            if harbor:
                ours = sweeps.run(with_network, attempts, parallel, starts_per_s)
                theirs = harbor.run(tasks, attempts, parallel, secrets.token_hex(8))
                seen.beside.append(ours)
                seen.peers.append(theirs)
                told += f"; with a network {ours.per_s:.2f} trials/s, Harbor {theirs.per_s:.2f}/s"
            say(f"round {number} of {rounds}: {told}")
    return _figures(seen, attempts, parallel)


def _figures(seen: _Seen, attempts: int, parallel: int) -> list[Figure]:
    sweeps = seen.sweeps
    rates = [each.per_s for each in sweeps]
    turns = [attempts / seconds for seconds in seen.bare_s]
    figures = [
        Figure.by_turns(f"throughput at {parallel}", rates, turns, "trials/s", WHAT["two execs"]),
        Figure.of("trial", [each.trial_s for each in sweeps], "s"),
        Figure.by_turns(
            "work of the machine",
            [each.core_s / attempts for each in sweeps],
            seen.bare_core_s,
            "core-s/trial",
            f"{WHAT['two execs']}; the command's start and end are in ours",
        ),
        Figure.of("first lease", [each.first_lease_s for each in sweeps], "s"),
        Figure.of("command", [each.command_s for each in sweeps], "s"),
    ]
    if seen.peers:
        figures += [
            Figure.by_turns(
                f"throughput at {parallel}, with a network",
                [each.per_s for each in seen.beside],
                [each.per_s for each in seen.peers],
                "trials/s",
                "Harbor",
            ),
            Figure.by_turns(
                "trial, with a network",
                [each.trial_s for each in seen.beside],
                [each.trial_s for each in seen.peers],
                "s",
                "Harbor",
            ),
        ]
    return figures
