"""A sweep that grows: more attempts, other conditions, other tasks, under the next lock.

What was planned stays planned, and an attempt's id is made of its sweep, condition, task and
index alone, so everything done counts on. A task or a condition whose digest has changed makes
new cells; the old ones are superseded, never mixed with them. What was frozen at the start
decides what every result means, so it cannot change: neither can a sweep shrink.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from scheduler.lock import Lock, LockError, lock_of
from scheduler.lock_difference import Difference, difference, shown
from scheduler.manifest import LoadedSweep, ManifestError, ManifestFault, SweepFile
from scheduler.manifest.faults import Place
from scheduler.plan import BaseImage, Plan, lay_out, make_plan
from scheduler.relay_check import with_relay_seen
from workers.contract.base import Strict
from workers.contract.spec import CanaryKind

SETTINGS = ("agent", "relay", "network", "seed", "budget", "canary")
"""Fields that a sweep file and a lock have alike."""

FEW = 10
"""Cells named one by one in a refusal."""


@dataclass(frozen=True)
class Growth:
    """What a sweep would grow to."""

    before: Lock
    plan: Plan
    """Under the next number; under that of ``before`` where they plan the same."""
    difference: Difference

    @property
    def is_new(self) -> bool:
        """Whether the next lock says something that the last does not."""
        return self.plan.number > self.before.number

    def with_relay_seen(self, environment: Mapping[str, str], *, key_needed: bool) -> Growth:
        """The same, once a deployment's relay was looked at; blocks.

        Raises:
            RelayNotReadyError: it cannot be used.
        """
        plan = with_relay_seen(self.plan, environment, key_needed=key_needed)
        return replace(self, plan=plan)


def grow(
    sweep: LoadedSweep,
    locks: Sequence[Lock],
    *,
    now: datetime,
    environment: Mapping[str, str],
    base_image: BaseImage | None,
    keys_needed: bool = True,
) -> Growth:
    """What a sweep becomes if it grows to what a sweep file says.

    Settings that the file leaves out are those of the sweep, not the defaults.

    Args:
        sweep: the file, or flags; its name does not count.
        locks: of the sweep, by number.
        now: aware.
        environment: as for ``make_plan``.
        base_image: that would be built on here.
        keys_needed: as for ``make_plan``.

    Raises:
        ManifestError: a file has faults, something frozen differs, or the sweep would shrink.
        LockError: the sweep was started by a version that named it otherwise.
    """
    before = locks[-1]
    plan = make_plan(
        replace(sweep, file=_with_unsaid(sweep.file, before)),
        started_at=datetime.fromisoformat(before.started_at),
        environment=environment,
        base_image=base_image,
        keys_needed=keys_needed,
        known_stack=before.buzz,
    )
    if plan.sweep != before.sweep:
        raise LockError(f"{before.sweep}: its lock says that it is {plan.sweep}")
    faults = [*_frozen(sweep, before, plan), *_shrunk(sweep, before, plan)]
    if faults:
        raise ManifestError(faults)
    plan = _with_old_canaries(before, plan)
    counts = _counts(before, plan)
    plan = replace(
        plan,
        number=before.number + 1,
        grown_at=f"{now.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}",
        spec=plan.spec.model_copy(update={"store": before.store}),
        counts=counts,
        attempts=tuple(lay_out(plan.sweep, plan.cells, counts)),
        base_image=before.base_image,
        profile=before.profile,
        relay_seen=before.relay_seen,
    )
    after = lock_of(plan)
    if _says(after) == _says(before):
        plan = replace(plan, number=before.number, grown_at=before.grown_at)
    return Growth(before, plan, difference(locks, after))


def _with_unsaid(file: SweepFile, before: Lock) -> SweepFile:
    """The file with the sweep's name, and with its settings where the file says nothing."""
    values: dict[str, Any] = {"name": before.name}
    for field in SETTINGS:
        if field not in file.model_fields_set:
            values[field] = getattr(before, field)
    for field in ("scoring", "limits", "timeout_multipliers"):
        said: Strict = getattr(file, field)
        values[field] = getattr(before, field).model_copy(
            update={each: getattr(said, each) for each in said.model_fields_set}
        )
    return file.model_copy(update=values)


def check_base(before: Lock, found: BaseImage | None) -> None:
    """Whether the base image here is the one that the sweep began with.

    Args:
        before: the last lock.
        found: as the engine has it; its digest is null where no engine was asked.

    Raises:
        LockError: it is another one under the same name.
    """
    known = before.base_image
    if known is None or found is None or None in (known.digest, found.digest):
        return
    if known.digest != found.digest:
        raise LockError(
            f"the base image {known.reference} of this sweep is {known.digest}, "
            f"and here {found.digest}: its images would differ"
        )


def _says(lock: Lock) -> dict[str, Any]:
    """What of a lock is more than its number and who made it."""
    # Not prompts and endpoints of conditions: their digests and names say as much.
    return lock.model_dump(mode="json", exclude={"number", "grown_at", "versions"})


# What may not be


def _frozen(sweep: LoadedSweep, before: Lock, plan: Plan) -> Iterator[ManifestFault]:
    """A fault for everything that was fixed at the start and would be otherwise now."""
    spec = plan.spec
    pairs: list[tuple[Place, Any, Any]] = [
        ((field,), getattr(before, field), getattr(spec, field))
        for field in ("agent", "relay", "network", "seed")
    ]
    for group, old, new in (
        ("scoring", before.scoring, plan.scoring),
        ("limits", before.limits, spec.limits),
        ("timeout_multipliers", before.timeout_multipliers, spec.timeout_multipliers),
    ):
        pairs += [
            ((group, field), getattr(old, field), getattr(new, field))
            for field in type(new).model_fields
        ]
    if before.buzz is not None and spec.buzz is not None:
        for name, was in before.buzz.digests.items():
            would = spec.buzz.digests[name]
            if was != would:
                message = (
                    f"{name} was frozen at the sweep's start as {was[:12]}…, and the folder has "
                    f"{would[:12]}…: another program is another agent, so another sweep"
                )
                yield sweep.document.fault(("agent_bin_dir",), message)
    for place, was, would in pairs:
        if was != would:
            message = f"frozen at the sweep's start as {was!r}, so it cannot become {would!r}"
            yield sweep.document.fault(place, message)
    base = None if before.base_image is None else before.base_image.reference
    if spec.base_image not in (None, base):
        message = (
            f"the base image was frozen at the sweep's start as {shown(base)}, "
            f"and here it is {shown(spec.base_image)}"
        )
        yield ManifestFault("environment", None, "APIARY_BASE_IMAGE", message)


CellName = tuple[str, str]
"""A task's and a condition's name."""


def _shrunk(sweep: LoadedSweep, before: Lock, plan: Plan) -> Iterator[ManifestFault]:
    """A fault for everything that is planned already and would not be any more."""
    now: dict[CellName, int] = {
        (cell.task.name, cell.condition.condition): plan.counts[cell.cell] for cell in plan.cells
    }
    tasks, conditions = ({name[part] for name in now} for part in (0, 1))
    canaries = {each.manifest.condition: each.canary for each in before.conditions}
    cells: list[str] = []
    for missing in sorted({task.name for task in before.tasks} - tasks):
        message = f"task {missing} is in the sweep, and would be missing: a sweep only grows"
        yield sweep.document.fault(("tasks",), message)
    for missing in (name for name in canaries if name not in conditions):
        yield _missing_condition(sweep, missing, canaries[missing])
    for each in before.cells:
        name = (each.task.name, each.condition.manifest.condition)
        if each.condition.canary or name[0] not in tasks or name[1] not in conditions:
            continue
        if now.get(name, 0) < each.attempts:
            cells.append(f"{name[0]} × {name[1]}: {each.attempts} -> {now.get(name, 0)}")
    if cells:
        message = f"fewer attempts than are planned already: {_few(cells)}; a sweep only grows"
        yield sweep.document.fault(("attempts",), message)


def _missing_condition(sweep: LoadedSweep, name: str, canary: CanaryKind | None) -> ManifestFault:
    message = f"condition {name} is in the sweep, and would be missing: a sweep only grows"
    return sweep.document.fault(("conditions",) if canary is None else ("canary", canary), message)


def _with_old_canaries(before: Lock, plan: Plan) -> Plan:
    """The plan with the canary cells that its tasks have already.

    Canaries are spread over the tasks anew whenever there are others, which may leave out a
    task that had one.
    """
    order = {name: place for place, name in enumerate(plan.conditions)}
    canaries = {cell.condition.digest: cell for cell in plan.cells if cell.canary}
    tasks = {task.digest for task in plan.tasks}
    more = [
        canaries[each.condition.digest].model_copy(update={"cell": each.cell, "task": each.task})
        for each in before.cells
        if each.condition.digest in canaries
        and each.task.digest in tasks
        and each.cell not in plan.counts
    ]
    if not more:
        return plan
    cells = sorted(
        (*plan.cells, *more),
        key=lambda cell: (cell.task.name, order[cell.condition.condition]),
    )
    counts = {**plan.counts, **{each.cell: before.attempts[each.cell] for each in more}}
    return replace(plan, cells=tuple(cells), counts=counts)


def _counts(before: Lock, plan: Plan) -> dict[str, int]:
    """The plan's, and of canaries no fewer than there are: with other tasks they spread out."""
    return {
        cell.cell: max(plan.counts[cell.cell], before.attempts.get(cell.cell, 0))
        for cell in plan.cells
    }


def _few(texts: Iterable[str]) -> str:
    listed = list(texts)
    more = f" and {len(listed) - FEW} more" if len(listed) > FEW else ""
    return ", ".join(listed[:FEW]) + more
