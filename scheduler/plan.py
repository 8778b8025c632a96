"""Stage 2, plan: LoadedSweep -> Plan.

The cells of a sweep are its tasks × its conditions. Their attempts are put in the order in
which they should start, round robin over conditions, so that a sweep that is cut short has
seen all of them equally.
"""

from __future__ import annotations

import heapq
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from operator import itemgetter
from pathlib import Path
from typing import Annotated, NamedTuple

from pydantic import Field

from scheduler.manifest import (
    CanaryInput,
    CanaryRule,
    LoadedCondition,
    LoadedSweep,
    ManifestError,
    Scoring,
    SweepBudget,
    read_inputs,
)
from workers.contract.base import Strict
from workers.contract.buzz import BuzzStack
from workers.contract.relay import Deployment, RelaySeen
from workers.contract.spec import CellSpec, SweepSpec, attempt_id, cell_id
from workers.contract.task import DEFAULT_ATTEMPTS, Task

MOST_ATTEMPTS = 2_000_000
"""Of a sweep; a slip in a large matrix should not fill a machine's memory."""


class PlannedAttempt(NamedTuple):
    """One attempt; a tuple, since a sweep may have 100,000."""

    attempt: str
    cell: str
    # Hides the method of that name: an attempt's index is called so in every format.
    index: int  # type: ignore[assignment]
    """Which of the cell's k attempts, from 0."""


class TaskSource(NamedTuple):
    """The folders that a task's archive is packed from."""

    folder: Path
    kit: Path


class BaseImage(Strict):
    """The image that task builds start from."""

    reference: str
    """As builds name it."""
    digest: str | None
    """Of its contents; null where the engine was not asked."""


class Profile(Strict):
    """How much of the machines a sweep was meant to use."""

    cpus: Annotated[int, Field(ge=1)] | None
    """Of the machine on which the sweep was planned."""
    n_concurrent: Annotated[int, Field(ge=1)] | None = None
    """``--n-concurrent``; null: by cores and memory."""


@dataclass(frozen=True)
class Plan:
    """What would run; nothing of it has started."""

    name: str
    started_at: str
    """RFC 3339, UTC, whole seconds."""
    spec: SweepSpec
    cells: tuple[CellSpec, ...]
    """By task name, then in the order of the sweep's conditions, then canaries."""
    conditions: tuple[str, ...]
    """The names of the conditions in the order of the sweep, each once; canaries last."""
    counts: Mapping[str, int]
    """Cell to its k."""
    attempts: tuple[PlannedAttempt, ...]
    """In the order in which they should start."""
    scoring: Scoring
    budget: SweepBudget
    base_image: BaseImage | None
    profile: Profile
    number: int = 1
    """Of the lock that says the same."""
    grown_at: str | None = None
    """When a sweep grew to this plan, as ``started_at``; null: it is the first."""
    canary: CanaryRule = field(default_factory=CanaryRule)
    varies: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Condition digest to what the sweep file varied in it: axis to the value's name."""
    archives: Mapping[str, TaskSource] = field(default_factory=dict)
    """Task digest to its folders; empty where the store has the archives already."""
    programs: Mapping[str, Path] = field(default_factory=dict)
    """Digest to the file of an agent's program; empty where the store has them already."""
    warnings: tuple[str, ...] = ()
    relay_seen: RelaySeen | None = None
    """What the deployment's relay said of itself; null: it was not asked, or is embedded."""

    @property
    def sweep(self) -> str:
        """The sweep's id."""
        return self.spec.sweep

    @property
    def tasks(self) -> tuple[Task, ...]:
        """Every task once."""
        return tuple({cell.task.digest: cell.task for cell in self.cells}.values())

    @property
    def deployment(self) -> Deployment | None:
        """The relay that its trials share; null: each has its own, or needs none."""
        relay = self.spec.relay
        if relay == "embedded" or all(cell.played(self.spec.agent) for cell in self.cells):
            return None
        return relay

    @property
    def canaries(self) -> frozenset[str]:
        """The names of those conditions that are canaries."""
        return frozenset(each.condition.condition for each in self.cells if each.canary)

    @property
    def canary_attempts(self) -> int:
        """How many of the attempts are canaries'."""
        return sum(self.counts[cell.cell] for cell in self.cells if cell.canary)


def make_plan(
    sweep: LoadedSweep,
    *,
    started_at: datetime,
    environment: Mapping[str, str],
    base_image: BaseImage | None = None,
    n_concurrent: int | None = None,
    keys_needed: bool = True,
    known_stack: BuzzStack | None = None,
) -> Plan:
    """Reads all that a sweep names, and lays out its cells and attempts.

    Args:
        sweep: from a sweep file or from flags.
        started_at: aware; with the name it makes the sweep's id.
        environment: where key variables must be set, and ``APIARY_STORE`` may be.
        base_image: what task builds are given as ``BASE_IMAGE``.
        n_concurrent: trials at once on a node; null: by its cores and memory.
        keys_needed: whether a key variable that is not set is a fault; else it is a warning.
        known_stack: the programs of a sweep that grows, where no folder of them is named.

    Raises:
        ManifestError: with every fault of every file, and of them together.
        ValueError: ``started_at`` is naive.
    """
    if started_at.tzinfo is None:
        raise ValueError("started_at must be an aware time")
    start = started_at.astimezone(UTC)
    inputs = read_inputs(sweep, environment, keys_needed=keys_needed, known_stack=known_stack)
    programs = inputs.programs
    spec = SweepSpec(
        sweep=f"{sweep.file.name}-{start:%Y%m%dT%H%M%SZ}",
        store=inputs.store,
        agent=sweep.file.agent,
        relay=sweep.file.relay,
        network=sweep.file.network,
        base_image=None if base_image is None else base_image.reference,
        seed=sweep.file.seed,
        limits=sweep.file.limits,
        endpoints=inputs.endpoints,
        pass_threshold=sweep.file.scoring.pass_threshold,
        timeout_multipliers=sweep.file.timeout_multipliers,
        buzz=None if programs is None else programs.stack,
    )
    counts: dict[str, int] = {}
    cells: list[CellSpec] = []
    for each in inputs.cells:
        cells.append(_cell(each.chosen.task, each.loaded))
        counts[cells[-1].cell] = each.attempts or default_count(each.chosen.task)
    counted = sum(counts.values())
    for canary in inputs.canaries:
        for task, count in canary_counts(canary, counted):
            cells.append(_cell(task, canary.loaded))
            counts[cells[-1].cell] = count
    if (planned := sum(counts.values())) > MOST_ATTEMPTS:
        message = f"{planned} attempts in all, expected at most {MOST_ATTEMPTS}"
        raise ManifestError([sweep.document.fault(("attempts",), message)])
    canaries = [each.loaded for each in inputs.canaries]
    names = [each.condition.condition for each in (*inputs.conditions, *canaries)]
    place = {name: number for number, name in enumerate(names)}
    cells.sort(key=lambda cell: (cell.task.name, place[cell.condition.condition]))
    return Plan(
        name=sweep.file.name,
        started_at=f"{start:%Y-%m-%dT%H:%M:%SZ}",
        spec=spec,
        cells=tuple(cells),
        conditions=tuple(names),
        counts=counts,
        attempts=tuple(lay_out(spec.sweep, cells, counts)),
        scoring=sweep.file.scoring,
        budget=sweep.file.budget,
        base_image=base_image,
        profile=Profile(cpus=os.cpu_count(), n_concurrent=n_concurrent),
        canary=sweep.file.canary,
        varies={each.condition.digest: each.varies for each in inputs.conditions if each.varies},
        archives={each.task.digest: TaskSource(each.folder, each.kit) for each in inputs.tasks},
        programs={} if programs is None else programs.files,
        warnings=inputs.warnings,
    )


def lay_out(
    sweep: str, cells: Iterable[CellSpec], counts: Mapping[str, int]
) -> Iterator[PlannedAttempt]:
    """Attempts in order: every cell's first, then every cell's second, and so on.

    The cells of one task stand side by side, so that conditions take turns. Canaries are spread
    evenly among them, the first of each kind before all else.
    """
    kinds: dict[str, list[CellSpec]] = {}
    for cell in cells:
        kinds.setdefault(cell.canary or "", []).append(cell)
    own = kinds.pop("", [])
    total = sum(counts[cell.cell] for cell in own)
    # A canary's place is that of the attempt before which it comes.
    lines = [_ranked(_in_turn(sweep, own, counts), 1.0, own=True)]
    for line in kinds.values():
        step = total / sum(counts[cell.cell] for cell in line)
        lines.append(_ranked(_in_turn(sweep, line, counts), step, own=False))
    for *_, attempt in heapq.merge(*lines, key=itemgetter(0, 1)):
        yield attempt


def _in_turn(
    sweep: str, cells: Iterable[CellSpec], counts: Mapping[str, int]
) -> Iterator[PlannedAttempt]:
    ids = [(cell.cell, cell.condition.digest, cell.task.digest) for cell in cells]
    for index in range(max((counts[cell] for cell, _, _ in ids), default=0)):
        for cell, condition, task in ids:
            if index < counts[cell]:
                yield PlannedAttempt(attempt_id(sweep, condition, task, index), cell, index)


def _ranked(
    attempts: Iterable[PlannedAttempt], step: float, *, own: bool
) -> Iterator[tuple[int, bool, PlannedAttempt]]:
    return ((int(number * step), own, attempt) for number, attempt in enumerate(attempts))


def canary_counts(canary: CanaryInput, counted: int) -> Iterator[tuple[Task, int]]:
    """How many attempts a canary makes of each of its tasks, those with none left out.

    Args:
        canary: one attempt for every ``canary.every`` others, the last of them begun.
        counted: how many attempts are no canaries.
    """
    count = -(-counted // canary.every)
    share, over = divmod(count, len(canary.tasks))
    for place, chosen in enumerate(canary.tasks):
        if share + (place < over):
            yield chosen.task, share + (place < over)


def canary_shares(cells: Iterable[CellSpec]) -> dict[str, int]:
    """Canary condition to the attempts of others for each of its own, at least 1.

    Args:
        cells: the cell of every attempt.
    """
    counts = Counter((cell.condition.condition, cell.canary) for cell in cells)
    others = sum(count for (_, canary), count in counts.items() if canary is None)
    return {name: max(1, others // count) for (name, canary), count in counts.items() if canary}


def default_count(task: Task) -> int:
    """K of a task where the sweep does not say: that of its layer."""
    return DEFAULT_ATTEMPTS[task.layer]


def _cell(task: Task, loaded: LoadedCondition) -> CellSpec:
    return CellSpec(
        cell=cell_id(loaded.condition.digest, task.digest),
        task=task,
        condition=loaded.condition,
        prompts=loaded.prompts,
        canary=loaded.canary,
    )
