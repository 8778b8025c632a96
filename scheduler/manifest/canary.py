"""Canaries: attempts among a sweep's own whose result is known beforehand.

A solver and an oracle pass, and a nop fails; one that ends otherwise, or invalid, says something
of the harness and the machines at that moment. A solver is a scripted model, served by the node
itself, and so is a nop on tasks with a fixture: they go through the same containers, relay,
gateway and verifier as the models. An oracle plays a Harbor task's own solution.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from scheduler.manifest.condition import LoadedCondition
from scheduler.manifest.faults import FaultList
from scheduler.manifest.made import made_condition, played_condition, unplayable
from scheduler.manifest.selection import ChosenTask, narrowed
from scheduler.manifest.sweep import LoadedSweep
from workers.contract.endpoint import Endpoint

PREFIX = "canary-"
"""How conditions and endpoints of canaries begin."""

PROFILES: dict[Literal["nop", "solver"], str] = {
    "nop": "scripted-silent",
    "solver": "scripted-solver",
}
"""The scripted model that plays each."""

PROMPT = "You are a canary: what you do is known beforehand.\n"
TIMEOUT_S = 300
"""Of a whole trial, as in the shipped scripted conditions."""


@dataclass(frozen=True)
class CanaryInput:
    """One kind of canary and the tasks that it runs."""

    loaded: LoadedCondition
    every: int
    """One attempt for so many of the others."""
    tasks: tuple[ChosenTask, ...]
    """At least one, sorted by name."""
    endpoint: Endpoint | None
    """Of its scripted model; None: no model is asked."""

    @property
    def endpoint_name(self) -> str:
        """The endpoint's name, which is the condition's too."""
        return self.loaded.condition.condition


def read_canaries(sweep: LoadedSweep, tasks: Sequence[ChosenTask]) -> tuple[CanaryInput, ...]:
    """The canaries that a sweep asks for; none where its tasks have faults.

    Raises:
        ManifestError: a glob fits no task, or a canary fits none.
    """
    rule, faults = sweep.file.canary, FaultList()
    if not tasks or (rule.oracle, rule.nop, rule.solver) == (None, None, None):
        return ()
    kept = narrowed(sweep, tasks, ("canary",), rule.include, rule.exclude)
    if not kept:
        return ()
    made: list[CanaryInput] = []
    if rule.oracle is not None:
        why = unplayable("oracle", kept)
        if why:
            faults.add(sweep.document.fault(("canary", "oracle"), why))
        made.append(CanaryInput(_played("oracle"), rule.oracle, kept, None))
    native = tuple(each for each in kept if each.task.fixture is not None)
    if rule.nop is not None:
        made.append(_scripted("nop", rule.nop, kept) if native else _silent(rule.nop, kept))
    if rule.solver is not None:
        if not native:
            message = "the scripted models speak on a relay, and no task here has a fixture.yaml"
            faults.add(sweep.document.fault(("canary", "solver"), message))
        made.append(_scripted("solver", rule.solver, native))
    faults.settle()
    return tuple(made)


def _scripted(
    kind: Literal["nop", "solver"], every: int, tasks: tuple[ChosenTask, ...]
) -> CanaryInput:
    """A canary with a scripted model; ``nop`` asks none of it where a task has no fixture."""
    name, model = f"{PREFIX}{kind}", PROFILES[kind]
    loaded = made_condition(name, model, PROMPT, TIMEOUT_S, kind)
    return CanaryInput(loaded, every, tasks, Endpoint(provider="scripted", model=model))


def _silent(every: int, tasks: tuple[ChosenTask, ...]) -> CanaryInput:
    return CanaryInput(_played("nop"), every, tasks, None)


def _played(kind: Literal["oracle", "nop"]) -> LoadedCondition:
    return played_condition(kind, f"{PREFIX}{kind}", kind)
