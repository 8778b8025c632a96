"""Chaos: a sweep of many short attempts that is hurt at random, followed to its end, and counted.

The seed decides which faults come, in which order, with which pauses and against whom; when a
sweep is where it is by then is the machine's affair. The last attempts run without faults, since
what a fault leaves behind is cleaned up by whoever works next.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from scheduler.bench.command import Command
from scheduler.bench.count import Left, Tally
from scheduler.bench.injections import INJECTIONS, Scene
from scheduler.bench.processes import BenchError
from scheduler.bench.world import TASKS, World

NODES = 3
SLOTS = 2
"""On each node."""
PAUSE_S = (3.0, 12.0)
"""Between two faults, unless so much is done before that the sweep would be over too soon."""
LEAST_FAULTS = 20
"""In a sweep, however quick the machine is, where there are enough attempts between them."""
LEAST_BETWEEN = 8
"""Attempts that are committed from one fault to the next, before the pause is over."""
AGAIN_S = 3.0
"""From a command's end to the next, so that a store that is away is not asked without end."""
QUIET = 20
"""Attempts at the end that are left in peace."""
LOOK_S = 0.5
LEFT_S = 30.0
"""For what has been told to end to be gone."""
FINISH_MINUTES = 15.0
"""Beside three times the minutes of the faults: for what is open then."""
GOOD_ENDS = frozenset({"settled"})
EXPECTED_CODES = frozenset({0, 4, 5, 130, -2, -9})
"""Of commands in a world that breaks; anything else is a bug. (-2: Ctrl-C after the last word.)"""
FRUITLESS = 5
"""Commands in a row without a commit, and without faults, after which it is given up."""

Say = Callable[[str], None]


@dataclass(frozen=True)
class ChaosResult:
    """What became of the sweep."""

    sweep: str
    seed: int
    seconds: float
    commands: int
    faults: Counter[str]
    """By kind."""
    tally: Tally
    left: Left
    settled: bool
    """False: it was not done when its time was over."""
    bugs: tuple[str, ...]
    """Commands that ended as none may, and tries that nobody could explain."""

    @property
    def is_clean(self) -> bool:
        """Whether the promise was kept."""
        wrong = (self.tally.lost, self.tally.twice, self.tally.misjudged, self.bugs)
        return self.settled and not any(wrong) and self.left.count == 0


@dataclass
class Chaos:
    """One run of it."""

    world: World
    seed: int
    attempts: int
    minutes: float
    say: Say
    _scene: Scene = field(init=False)
    _faults: Counter[str] = field(init=False, default_factory=Counter)
    _began: float = field(init=False, default_factory=time.monotonic)

    def run(self) -> ChaosResult:
        """Runs the sweep to its end.

        Raises:
            BenchError: the bench itself could not go on.
        """
        self.world.ray.up(NODES)
        draws = random.Random(self.seed)
        each = max(1, self.attempts // len(TASKS))
        file = self.world.sweep_file("chaos", each)
        self._scene = Scene(self.world, draws, self._start("run", str(file)))
        self._wait_for_sweep()
        until = self._began + 60 * self.minutes
        self._hurt(draws, until)
        self._scene.heal_all()
        self.say("no more faults: what is open goes on to its end")
        bound = 60 * (3 * self.minutes + FINISH_MINUTES)
        settled = self._finish(until + bound)
        return self._result(settled)

    def _hurt(self, draws: random.Random, until: float) -> None:
        between = max(LEAST_BETWEEN, self.attempts // LEAST_FAULTS)
        next_at, next_open = time.monotonic() + draws.uniform(*PAUSE_S), self.attempts - between
        scene = self._scene
        while time.monotonic() < until and not self._is_settled():
            scene.heal_due()
            self._go_on()
            if time.monotonic() >= next_at or self._open() <= next_open:
                if self._open() <= QUIET:
                    return
                self._hurt_once(draws)
                next_at = time.monotonic() + draws.uniform(*PAUSE_S)
                next_open = self._open() - between
            time.sleep(LOOK_S)

    def _hurt_once(self, draws: random.Random) -> None:
        """The first fault, in an order by lot, for which there is somebody to hurt."""
        for kind in draws.sample(list(INJECTIONS), len(INJECTIONS)):
            told = INJECTIONS[kind](self._scene)
            if told:
                self._faults[kind] += 1
                self._tell(f"{kind}: {told}")
                return

    def _finish(self, until: float) -> bool:
        """Goes on without faults; whether the sweep was settled in time."""
        done, tried = self._open(), len(self._scene.commands)
        while not self._is_settled():
            if self._open() < done:
                done, tried = self._open(), len(self._scene.commands)
            if time.monotonic() > until or len(self._scene.commands) - tried > FRUITLESS:
                return False
            self._go_on()
            time.sleep(LOOK_S)
        for command in self._scene.commands:
            # An older one that has given way needs a moment to see it.
            command.wait(max(1.0, until - time.monotonic()))
        return True

    def _go_on(self) -> None:
        """Starts the next command if the last one has ended."""
        last = self._scene.command
        if last.code is None or time.monotonic() - self._scene.resumed_at < AGAIN_S:
            return
        self._scene.command = self._start("resume", self._scene.sweep)
        told = last.end.get("reason") or "cut short"
        self._tell(f"resume, since the last command ended with {last.code} ({told})")

    def _start(self, *arguments: str) -> Command:
        return self.world.command(
            *arguments, "--n-concurrent", str(SLOTS), cluster=True, variables={}
        )

    def _wait_for_sweep(self) -> None:
        first = self._scene.command
        give_up = time.monotonic() + 120.0
        while not first.sweep:
            if first.code is not None or time.monotonic() > give_up:
                raise BenchError(f"the sweep did not begin: {first.errors()[-2000:]}")
            time.sleep(LOOK_S)
        self._scene.sweep = first.sweep
        self.world.sweeps.append(first.sweep)
        self._tell(f"sweep {first.sweep} has begun")

    def _is_settled(self) -> bool:
        return self._scene.command.end.get("state") in GOOD_ENDS

    def _open(self) -> int:
        return self.attempts - len(self.world.committed(self._scene.sweep))

    def _tell(self, text: str) -> None:
        done = len(self.world.committed(self._scene.sweep))
        self.say(f"{time.monotonic() - self._began:6.0f} s  {done:4d} committed  {text}")

    def _result(self, settled: bool) -> ChaosResult:
        sweep, commands = self._scene.sweep, self._scene.commands
        give_up = time.monotonic() + LEFT_S
        while (left := self.world.left(sweep)).count and time.monotonic() < give_up:
            time.sleep(LOOK_S)
        tally = self.world.tally(sweep, commands)
        bugs = [
            f"apiary {command.arguments[0]} ended with {command.code}: {command.errors()[-2000:]}"
            for command in commands
            if command.code is not None and command.code not in EXPECTED_CODES
        ]
        if unexplained := tally.causes["unclassified"]:
            bugs.append(f"{unexplained} tries ended with the cause unclassified")
        return ChaosResult(
            sweep=sweep,
            seed=self.seed,
            seconds=time.monotonic() - self._began,
            commands=len(commands),
            faults=self._faults,
            tally=tally,
            left=left,
            settled=settled,
            bugs=tuple(bugs),
        )
