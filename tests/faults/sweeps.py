"""A sweep to which something happens, followed to its end and counted."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from scheduler.bench.command import Command
from scheduler.bench.count import PREFIX
from scheduler.bench.processes import wait_for
from scheduler.bench.world import World
from tests.faults.table import Row

WITHIN_S = 240.0
"""For each step, on a machine that has other work; a wait ends as soon as it comes true."""


class Sweep:
    """Two tasks, some attempts of each, in a world; see ``sweep``."""

    def __init__(
        self,
        world: World,
        name: str,
        attempts: int = 6,
        *,
        cluster: bool = True,
        slots: int = 2,
        variables: Mapping[str, str] | None = None,
        **limits: Any,
    ) -> None:
        self.world = world
        self.planned = 2 * attempts
        self._cluster = cluster
        self._slots = slots
        self._variables = variables or {}
        self.commands: list[Command] = []
        self.counted: dict[str, bytes] = {}
        """The results that were seen, as they were first."""
        file = world.sweep_file(name, attempts, **limits)
        first = self._start("run", str(file))
        wait_for("the sweep's id", lambda: first.sweep != "" or first.code is not None, WITHIN_S)
        assert first.sweep, first.errors()
        self.id = first.sweep
        world.sweeps.append(self.id)

    @property
    def last(self) -> Command:
        """The command that was started last."""
        return self.commands[-1]

    def resume(self) -> Command:
        """Starts one more command on it."""
        return self._start("resume", self.id)

    def wait_for(self, *, committed: int = 0, running: int = 0) -> None:
        """Waits until so many attempts are committed while so many containers run."""

        def ready() -> bool:
            assert self.last.code is None, (self.last.code, self.last.end, self.last.errors())
            return (
                len(self.world.committed(self.id)) >= committed
                and len(self.world.containers(self.id, running=True)) >= running
            )

        self.until(f"{committed} committed, {running} running", ready)

    def until(self, what: str, condition: Callable[[], bool], within_s: float = WITHIN_S) -> None:
        """Waits until a condition holds, and remembers every result that it sees meanwhile."""

        def watched() -> bool:
            self._remember()
            return condition()

        wait_for(what, watched, within_s)

    def outlast(self, seconds: float) -> None:
        """Lets a time pass: how long something is away is part of a fault."""
        until = time.monotonic() + seconds
        self.until(f"{seconds:g} s", lambda: time.monotonic() > until)

    def files(self, name: str) -> int:
        """How many tries have uploaded a file of this name."""
        folder = self.world.bucket.objects / PREFIX / "sweeps" / self.id / "tries"
        return len(list(folder.glob(f"*/*/*/{name}")))

    def end(self, command: Command | None = None) -> int:
        """Waits for a command's end, by default the last one's; gives its exit code."""
        command = command or self.last
        self.until(f"the end of {command.arguments[0]}", lambda: command.code is not None)
        return command.wait(1.0)

    def settle(self) -> None:
        """Waits for the last command to settle the sweep."""
        code = self.end()
        assert code == 0, (code, self.last.end.get("reason"), self.last.errors())
        assert self.last.end["state"] == "settled", self.last.end

    def row(self, fault: str) -> Row:
        """What became of it; its results are what they were when they were first seen."""
        give_up = time.monotonic() + 20.0
        left = self.world.left(self.id)
        while left.count and time.monotonic() < give_up:
            time.sleep(0.2)  # A process that was told to end needs a moment.
            left = self.world.left(self.id)
        tally = self.world.tally(self.id, self.commands)
        self._remember()
        displaced = {
            attempt for attempt, was in self.counted.items() if self._results().get(attempt) != was
        }
        row = Row(
            fault=fault,
            resumed=len(self.commands) - 1,
            planned=len(tally.planned),
            counted=len(tally.committed),
            lost=len(tally.lost),
            twice=len(tally.twice | displaced),
            left_over=left.count,
        )
        sys.stdout.write(f"{row}\n{left}\n{tally.causes}\n{self._story()}\n")
        return row

    def _story(self) -> str:
        """What the commands told their user."""
        lines = []
        for each in self.commands:
            lines += [
                f"apiary {each.arguments[0]}: exit code {each.code}, {each.end.get('reason')}"
            ]
            lines += [f"  {note}" for note in each.notes()]
            lines += [f"  ! {line}" for line in each.errors().splitlines()]
        return "\n".join(lines)

    def _start(self, *arguments: str) -> Command:
        slots = ("--n-concurrent", str(self._slots))
        started = self.world.command(
            *arguments, *slots, cluster=self._cluster, variables=self._variables
        )
        self.commands.append(started)
        return started

    def _remember(self) -> None:
        for attempt, result in self._results().items():
            self.counted.setdefault(attempt, result)

    def _results(self) -> dict[str, bytes]:
        found = {}
        for path in self.world.results(self.id):
            with contextlib.suppress(FileNotFoundError):
                found[path.parent.name] = path.read_bytes()
        return found


@contextlib.contextmanager
def sweep(world: World, name: str, **options: Any) -> Iterator[Sweep]:
    """A sweep that has begun; its commands are ended when it is left."""
    before = len(world.commands)
    try:
        yield Sweep(world, name, **options)
    finally:
        for command in world.commands[before:]:
            command.kill(group=True)
