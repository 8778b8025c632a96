"""The faults of chaos: what is done, to whom, and how it is undone after a while."""

from __future__ import annotations

import random
import signal
import time
from collections.abc import Callable
from typing import Any

from scheduler.bench.command import Command
from scheduler.bench.processes import Found
from scheduler.bench.world import DOCKER_S, LIMITS, World
from workers.container.api import ConflictError, MissingError

YOUNG_S = 5.0
"""A command that was started just now is let be: else none would get anywhere."""
AWAY_S = (2.0, 25.0)
"""How long a store is away; trials outlast some of it."""
RETURN_S = (0.0, 8.0)
"""Until another Ray node comes."""
FROZEN_S = (1.4, 2.2)
"""How long a node is frozen, in lease terms."""


class Scene:
    """A sweep in a world, its newest command, and what is to be healed."""

    def __init__(self, world: World, draws: random.Random, command: Command) -> None:
        self.world = world
        self.draws = draws
        self.sweep = ""
        self.commands: list[Command] = []
        self.command = command
        self._healing: list[tuple[float, str, Callable[[], None]]] = []
        """When, what part of the world, and how."""

    @property
    def command(self) -> Command:
        """The newest; an older one may still be giving way to it."""
        return self.commands[-1]

    @command.setter
    def command(self, command: Command) -> None:
        self.commands.append(command)
        self.resumed_at = time.monotonic()

    def later(self, after: tuple[float, float], part: str, heal: Callable[[], None]) -> float:
        """Something heals after a time that is drawn; gives the seconds."""
        seconds = self.draws.uniform(*after)
        self._healing.append((time.monotonic() + seconds, part, heal))
        return seconds

    def is_hurt(self, part: str) -> bool:
        """Whether a part of the world waits to be healed."""
        return any(name == part for _, name, _ in self._healing)

    def heal_due(self) -> None:
        """Heals what has been away long enough."""
        now = time.monotonic()
        due = [each for each in self._healing if each[0] <= now]
        self._healing = [each for each in self._healing if each[0] > now]
        for _, _, heal in due:
            heal()

    def heal_all(self) -> None:
        """Heals everything at once."""
        healing, self._healing = self._healing, []
        for _, _, heal in healing:
            heal()

    def drawn(self, found: list[Any]) -> Any:
        """One of them, or None; a number is drawn in any case, so that the seed says what comes."""
        share = self.draws.random()
        return found[int(share * len(found))] if found else None


def kill_driver(scene: Scene) -> str:
    """SIGKILL of the command alone: its nodes go on without it."""
    if not _is_grown(scene):
        return ""
    scene.command.kill()
    return "SIGKILL"


def interrupt_command(scene: Scene) -> str:
    """Ctrl-C, once or twice."""
    twice = scene.draws.random() < 0.3
    if not _is_grown(scene):
        return ""
    scene.command.signal_group(signal.SIGINT)
    if twice:
        scene.later((0.5, 3.0), "command", lambda: scene.command.signal_group(signal.SIGINT))
    return "twice" if twice else "once"


def second_command(scene: Scene) -> str:
    """The same sweep is resumed while a command is at it: the older gives way."""
    if not _is_grown(scene):
        return ""
    scene.command = scene.world.command(
        "resume", scene.sweep, "--n-concurrent", "2", cluster=True, variables={}
    )
    return "resume beside a command that runs"


def kill_node(scene: Scene) -> str:
    """SIGKILL of a node actor."""
    victim: Found | None = scene.drawn(scene.world.ray.actors())
    if victim is None:
        return ""
    scene.world.ray.kill(victim.pid)
    return f"process {victim.pid}"


def freeze_node(scene: Scene) -> str:
    """SIGSTOP of a node actor until its leases are long over."""
    victim: Found | None = scene.drawn(scene.world.ray.actors())
    if victim is None or scene.is_hurt("frozen"):
        return ""
    ray, pid = scene.world.ray, victim.pid
    ray.freeze(pid)
    term = LIMITS["lease_term_s"]
    seconds = scene.later((FROZEN_S[0] * term, FROZEN_S[1] * term), "frozen", lambda: ray.thaw(pid))
    return f"process {pid} for {seconds:.0f} s"


def kill_raylet(scene: Scene) -> str:
    """SIGKILL of a Ray node that is not the head; another one joins."""
    _head, *others = scene.world.ray.raylets()
    victim: Found | None = scene.drawn(others)
    if victim is None or scene.is_hurt("raylet"):
        return ""
    scene.world.ray.kill(victim.pid)
    scene.later(RETURN_S, "raylet", scene.world.ray.add)
    return f"process {victim.pid}"


def kill_store(scene: Scene) -> str:
    """SIGKILL of the S3 server, which comes back."""
    if scene.is_hurt("store"):
        return ""
    scene.world.bucket.kill()
    return f"away for {scene.later(AWAY_S, 'store', scene.world.bucket.up):.0f} s"


def freeze_store(scene: Scene) -> str:
    """The S3 server answers nothing for a while."""
    if scene.is_hurt("store"):
        return ""
    scene.world.bucket.freeze()
    return f"silent for {scene.later(AWAY_S, 'store', scene.world.bucket.thaw):.0f} s"


def refuse_results(scene: Scene) -> str:
    """The S3 server takes every file but results."""
    if scene.is_hurt("store"):
        return ""
    scene.world.bucket.refuse("PUT .*/result.json")
    return f"for {scene.later(AWAY_S, 'store', scene.world.bucket.allow):.0f} s"


def kill_container(scene: Scene) -> str:
    """SIGKILL of a container of the sweep, from outside."""
    victim = scene.drawn(scene.world.containers(scene.sweep, running=True))
    return _container(victim, lambda name: scene.world.api.kill(name, DOCKER_S))


def remove_container(scene: Scene) -> str:
    """A container of the sweep is removed by force, from outside."""
    victim = scene.drawn(scene.world.containers(scene.sweep))
    return _container(victim, lambda name: scene.world.api.remove(name, DOCKER_S))


def _container(victim: Any, hurt: Callable[[str], None]) -> str:
    if victim is None:
        return ""
    try:
        hurt(victim["Id"])
    except (MissingError, ConflictError):
        return ""  # It ended by itself.
    return str(victim["Id"][:12])


def _is_grown(scene: Scene) -> bool:
    command = scene.command
    return command.code is None and time.monotonic() - command.started > YOUNG_S


INJECTIONS: dict[str, Callable[[Scene], str]] = {
    "driver killed": kill_driver,
    "command interrupted": interrupt_command,
    "second command": second_command,
    "node killed": kill_node,
    "node frozen": freeze_node,
    "raylet killed": kill_raylet,
    "store killed": kill_store,
    "store frozen": freeze_store,
    "results refused": refuse_results,
    "container killed": kill_container,
    "container removed": remove_container,
}
"""By what is told. Each says what it did to whom, or nothing if there was nobody to hurt."""
