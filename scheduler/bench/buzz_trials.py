"""``bench trial``: Buzz-native trials of a model that answers at once, alone and side by side.

By turns, so that all meet the same machine: a sweep of one trial at a time, bare loops of one
turn at a time, then both with many at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median

from scheduler.bench.bare import WHAT, BareLoop, Turn
from scheduler.bench.figure import Figure
from scheduler.bench.timed_sweeps import TimedSweep, TimedSweeps

Say = Callable[[str], None]
TASK = "user-mention"
"""A short one: two requests to the model, one message."""
THROUGHPUT: dict[Turn, str] = {
    "two execs": "throughput",
    "two containers": "throughput by its own calls",
}
"""What it is called against each loop."""
HELPS = 5


@dataclass
class BuzzTrials:
    """What was measured of trials, so many at once."""

    parallel: int
    sweeps: list[TimedSweep] = field(default_factory=list)
    bare: dict[Turn, list[float]] = field(default_factory=lambda: {turn: [] for turn in WHAT})
    """Turns a second, a sample a round."""

    @property
    def how(self) -> str:
        """How many at once, in words."""
        return "alone" if self.parallel == 1 else f"{self.parallel} at once"

    def phases(self) -> dict[str, float]:
        """The median of each phase over the rounds, in their order; seconds."""
        return {
            phase: median(each.phases[phase] for each in self.sweeps)
            for phase in self.sweeps[0].phases
        }

    def figures(self) -> list[Figure]:
        """Throughput, trial, what of it is ours, first lease, and phases."""
        rates = [each.per_s for each in self.sweeps]
        return [
            *(
                Figure.by_turns(
                    f"{name}, {self.how}", rates, self.bare[turn], "trials/s", WHAT[turn]
                )
                for turn, name in THROUGHPUT.items()
            ),
            Figure.of(f"trial, {self.how}", [each.trial_s for each in self.sweeps], "s"),
            Figure.of(
                f"outside agent and verifier, {self.how}",
                [each.ours_s for each in self.sweeps],
                "s",
                median(each.trial_s for each in self.sweeps),
                "the trial",
            ),
            *(
                Figure.of(
                    f"phase {phase}, {self.how}", [each.phases[phase] for each in self.sweeps], "s"
                )
                for phase in self.phases()
            ),
        ]


def measure_buzz_trials(
    sweeps: TimedSweeps,
    *,
    attempts: Mapping[int, int],
    rounds: int,
    starts_per_s: float | None,
    say: Say,
) -> list[BuzzTrials]:
    """Runs sweeps and bare loops, so many rounds.

    Args:
        sweeps: where sweeps run.
        attempts: how many at once to how many in all: of each sweep, and turns of each loop.
        rounds: how often.
        starts_per_s: what the node may start a second; null: any number.
        say: hears how far it is.

    Raises:
        BenchError: something of it could not be measured.
        ContainerError: the engine refused the bare loop.
    """
    manifests = sweeps.manifests
    sweep = {
        "tasks": {"path": str(manifests / "tasks"), "include": [TASK]},
        "conditions": [str(manifests / "conditions" / "scripted-solver.yaml")],
        "endpoints": str(manifests.parent / "deploy" / "endpoints" / "scripted.json"),
    }
    made = [BuzzTrials(parallel) for parallel in attempts]
    with BareLoop(sweeps.base_image, max(attempts)) as bare:
        # The first trial builds the task's image and the agent's files.
        sweeps.run(sweep, 1, 1)
        for number in range(1, rounds + 1):
            for each in made:
                count = attempts[each.parallel]
                done = sweeps.run(sweep, count, each.parallel, starts_per_s)
                each.sweeps.append(done)
                for turn, turns in each.bare.items():
                    turns.append(count / bare.seconds(count, each.parallel, turn))
                told = f"{done.per_s:.2f} trials/s, bare loop {each.bare['two execs'][-1]:.2f}/s"
                say(f"round {number} of {rounds}, {each.how}: {told}")
    return made


def all_figures(made: Sequence[BuzzTrials]) -> list[Figure]:
    """The figures of all, and the first lease of every command."""
    leases = [sweep.first_lease_s for each in made for sweep in each.sweeps]
    rows = [figure for each in made for figure in each.figures()]
    return [*rows, Figure.of("first lease", leases, "s")]


def measure_help(sweeps: TimedSweeps) -> Figure:
    """How long ``apiary --help`` takes, by turns with an interpreter that does nothing."""
    pairs = [
        (sweeps.python_s("-m", "scheduler", "--help"), sweeps.python_s("-c", "pass"))
        for _ in range(HELPS)
    ]
    ours, bare = zip(*pairs, strict=True)
    return Figure.by_turns("apiary --help", ours, bare, "s", "an interpreter that does nothing")
