"""A run's line of the trend: measured from its sweep, written and read; blocks."""

from __future__ import annotations

import hashlib
import importlib.resources
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources.abc import Traversable

from scheduler.lock import lock_numbers, read_lock
from scheduler.lock_format import Lock
from scheduler.report.collect import collect_under
from scheduler.report.results import CellResults, SweepResults
from scheduler.report.score import score
from scheduler.report.summary import CellScore, ConditionScore, Summary
from scheduler.series.records import is_stamp
from scheduler.series.trend_format import (
    Break,
    Surroundings,
    TrendCell,
    TrendCondition,
    TrendRecord,
    trend_key,
)
from workers.contract.outcome import Verdict
from workers.storage.interface import MissingKeyError, Store

MOST_RECORDS = 1000
"""Lines that are read of one trend, the latest."""

AGENT_PACKAGES = ("workers.agent", "workers.nostr")
"""What runs as the agent in a task's container."""


@dataclass(frozen=True)
class Measured:
    """What a sweep came to, before it is held against anything."""

    rule: str
    coverage_gate: float
    surroundings: Surroundings | None
    conditions: tuple[TrendCondition, ...]
    outage: str
    """Why it says nothing about the agent; empty: it does."""
    open: int
    """Attempts that ``resume`` would go on with."""


NOTHING = Measured("strict", 0.9, None, (), "nothing was planned", 0)
"""Of a run that never had a lock."""


def measure(store: Store, sweep: str) -> Measured:
    """What a sweep came to so far.

    Raises:
        FormatError: a record is not of this version's format.
        StoreError: the store refused.
    """
    numbers = lock_numbers(store, sweep)
    if not numbers:
        return NOTHING
    lock = read_lock(store, sweep, numbers[-1])
    results = collect_under(store, lock)
    return measured(lock, results, score(results))


def measured(lock: Lock, results: SweepResults, summary: Summary) -> Measured:
    """The same, of what was read. Pure but for the agent's files."""
    failures: dict[str, dict[str, dict[str, int]]] = defaultdict(lambda: defaultdict(dict))
    for each in summary.causes:
        split = failures[each.condition][each.blame]
        split[each.cause] = split.get(each.cause, 0) + each.tries
    cells = {cell.cell: cell for cell in results.cells}
    conditions = tuple(
        _condition(condition, summary, cells, failures[condition.condition]).model_copy(
            update={"digest": lock.line_of(condition.digest)}
        )
        for condition in summary.conditions
    )
    return Measured(
        rule=summary.rule,
        coverage_gate=summary.coverage_gate,
        surroundings=surroundings_of(lock),
        conditions=conditions,
        outage=_outage(results, summary),
        open=sum(condition.rates.open for condition in summary.conditions),
    )


def surroundings_of(lock: Lock) -> Surroundings:
    """What a sweep rests on beside its tasks and conditions."""
    image = lock.base_image
    profile = {
        "cores": lock.profile.cpus,
        "trials at once": lock.profile.n_concurrent,
        "CPU overcommit": lock.limits.cpu_overcommit,
        "memory overcommit": lock.limits.memory_overcommit,
        "network": lock.network,
    }
    return Surroundings(
        apiary=lock.versions.apiary,
        agent=f"{lock.agent}:{agent_digest()}",
        base_image=None if image is None else image.digest or image.reference,
        profile={name: str(value) for name, value in profile.items() if value is not None},
    )


def agent_digest() -> str:
    """SHA-256 over the files of the agent's program, names and contents."""
    digest = hashlib.sha256()
    for package in AGENT_PACKAGES:
        for name, data in _files(importlib.resources.files(package), package):
            digest.update(f"{name}\0{len(data)}\0".encode() + data)
    return digest.hexdigest()


def breaks_between(before: TrendRecord | None, now: Measured) -> tuple[Break, ...]:
    """What is another one than in the run before. Pure."""
    if before is None or before.surroundings is None or now.surroundings is None:
        return ()
    return tuple(_breaks(before, before.surroundings, now, now.surroundings))


def read_trend(store: Store, series: str, most: int = MOST_RECORDS) -> list[TrendRecord]:
    """The lines of a trend in the order of their due times.

    Raises:
        FormatError: a record is not of this version's format.
        StoreError: the store refused.
    """
    keys = [trend_key(series, mark) for mark in trend_stamps(store, series)[-most:]]
    return [TrendRecord.from_json(store.get(key), key) for key in keys]


def trend_stamps(store: Store, series: str) -> list[str]:
    """The due times of the lines of a trend, in order, as keys have them.

    Raises:
        StoreError: the store refused.
    """
    prefix = f"series/{series}/"
    # A due time begins with its year; what stands beside the lines does not.
    names = (key[len(prefix) :].removesuffix(".json") for key in store.keys(f"{prefix}2"))
    return [name for name in names if is_stamp(name)]


def write_line(store: Store, record: TrendRecord, stamp: str) -> TrendRecord:
    """Creates a run's line.

    Returns:
        The line that counts: another's if one was there already.
    """
    key = trend_key(record.series, stamp)
    if store.create(key, record.to_json().encode() + b"\n"):
        return record
    return TrendRecord.from_json(store.get(key), key)


def read_line(store: Store, series: str, stamp: str) -> TrendRecord | None:
    """A run's line; None: there is none yet."""
    key = trend_key(series, stamp)
    try:
        return TrendRecord.from_json(store.get(key), key)
    except MissingKeyError:
        return None


def _condition(
    condition: ConditionScore,
    summary: Summary,
    cells: Mapping[str, CellResults],
    failures: Mapping[str, Mapping[str, int]],
) -> TrendCondition:
    workflow = condition.workflow
    return TrendCondition(
        condition=condition.condition,
        digest=condition.digest,
        coverage=condition.rates.coverage,
        passed=condition.rates.passed,
        planned=condition.rates.planned,
        workflow=condition.figure,
        interval=None if workflow is None else workflow.interval,
        cost_usd=condition.spent.cost_usd,
        unknown_cost_calls=condition.spent.unknown_cost_calls,
        failures={blame: dict(causes) for blame, causes in failures.items()},
        cells=tuple(
            _cell(cell, cells[cell.cell])
            for cell in summary.cells
            if cell.condition_digest == condition.digest
        ),
    )


def _cell(cell: CellScore, results: CellResults) -> TrendCell:
    tries = [record for attempt in results.attempts for record in attempt.tries]
    return TrendCell(
        task=cell.task,
        task_digest=cell.task_digest,
        layer=cell.layer,
        images=tuple(sorted({each.digests.image for each in tries if each.digests.image})),
        planned=cell.rates.planned,
        passed=cell.rates.passed,
        failed=cell.rates.failed,
        rate=cell.rates.valid_only,
        interval=cell.interval,
        coverage=cell.rates.coverage,
        tries=cell.rates.tries,
        cost_usd=cell.spent.cost_usd,
        mean_seconds=cell.spent.trial_seconds / len(tries) if tries else None,
    )


def _outage(results: SweepResults, summary: Summary) -> str:
    """Below the coverage gate a run says nothing, and what is missing says whose doing it is."""
    low = [each for each in summary.conditions if each.rates.coverage < summary.coverage_gate]
    if summary.conditions and not low:
        return ""
    blames = Counter(
        f"{record.blame}/{record.cause}"
        for cell in results.cells
        if cell.canary is None
        for attempt in cell.attempts
        if attempt.result is None
        for record in attempt.tries
        if record.verdict is Verdict.INVALID
    )
    share = min((each.rates.coverage for each in low), default=0.0)
    causes = ", ".join(f"{name} × {count}" for name, count in blames.most_common(3))
    return f"coverage {share:.0%}: {causes or 'attempts were never tried'}"


def _breaks(
    before: TrendRecord, was: Surroundings, now: Measured, is_: Surroundings
) -> Iterator[Break]:
    if was.apiary != is_.apiary:
        yield _break("Apiary version", "", was.apiary, is_.apiary)
    if was.agent != is_.agent:
        yield _break("agent", "", was.agent, is_.agent)
    if was.profile != is_.profile:
        names = sorted(
            name
            for name in was.profile.keys() | is_.profile.keys()
            if was.profile.get(name) != is_.profile.get(name)
        )
        for name in names:
            old, new = was.profile.get(name), is_.profile.get(name)
            yield _break("resource profile", name, old, new)
    if was.base_image != is_.base_image:
        yield _break("image", "base", was.base_image, is_.base_image)
    old_conditions = {each.condition: each.digest for each in before.conditions}
    for each in now.conditions:
        old = old_conditions.get(each.condition)
        if old is not None and old != each.digest:
            yield _break("condition", each.condition, old, each.digest)
    old_cells, new_cells = _by_task(before.conditions), _by_task(now.conditions)
    for task, cell in new_cells.items():
        old_cell = old_cells.get(task)
        if old_cell is None:
            continue
        if old_cell.task_digest != cell.task_digest:
            yield _break("task", task, old_cell.task_digest, cell.task_digest)
        elif old_cell.images and cell.images and not {*old_cell.images} & {*cell.images}:
            yield _break("image", task, old_cell.images[0], cell.images[0])
    gone = [*sorted(old_conditions.keys() - {each.condition for each in now.conditions})]
    for name in gone:
        yield _break("condition", name, old_conditions[name], None)
    for task in sorted(old_cells.keys() - new_cells.keys()):
        yield _break("task", task, old_cells[task].task_digest, None)
    for name in sorted({each.condition for each in now.conditions} - old_conditions.keys()):
        yield _break(
            "condition",
            name,
            None,
            next(each.digest for each in now.conditions if each.condition == name),
        )
    for task in sorted(new_cells.keys() - old_cells.keys()):
        yield _break("task", task, None, new_cells[task].task_digest)


def _break(what: str, name: str, before: str | None, after: str | None) -> Break:
    return Break.model_validate(
        {"what": what, "name": name, "before": before or "", "after": after or ""}
    )


def _by_task(conditions: Iterable[TrendCondition]) -> dict[str, TrendCell]:
    """Task to its cell under the first condition that has it."""
    found: dict[str, TrendCell] = {}
    for condition in conditions:
        for cell in condition.cells:
            found.setdefault(cell.task, cell)
    return found


def _files(folder: Traversable, name: str) -> Sequence[tuple[str, bytes]]:
    found: list[tuple[str, bytes]] = []
    for each in sorted(folder.iterdir(), key=lambda each: each.name):
        if each.is_dir():
            if each.name != "__pycache__":
                found += _files(each, f"{name}/{each.name}")
        elif each.is_file():
            found.append((f"{name}/{each.name}", each.read_bytes()))
    return found
