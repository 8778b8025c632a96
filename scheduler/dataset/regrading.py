"""``apiary regrade``: the present verifiers on the evidence that a sweep has left.

No agent runs, and the first verdicts stay as they are. What is compared is what the tests said
then and what they say now; whether evidence is sound was decided then, and is not asked again.
"""

from __future__ import annotations

import asyncio
import os
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from scheduler.dataset.images import ensure_task_image
from scheduler.dataset.regrade_format import NotRegraded, Regrade, Regraded, RegradedTask
from scheduler.dataset.verifying import Verdict, judge
from scheduler.lock import Lock
from scheduler.report.collect import READERS
from scheduler.report.results import AttemptResults, CellResults, SweepResults
from workers.container.interface import ContainerError, ContainerTimeoutError, Engine
from workers.contract.base import sha256_hex
from workers.contract.outcome import Blame, Cause
from workers.contract.outcome import Verdict as Outcome
from workers.contract.result import TryRecord, try_prefix
from workers.contract.task import Task
from workers.storage.interface import MissingKeyError, Store

BATCH = 25
"""Tries judged by one container; a start costs more than a verification."""
EVIDENCE = "evidence.json"


@dataclass(frozen=True)
class PresentTask:
    """A task as its folder has it now."""

    folder: Path
    task: Task


@dataclass(frozen=True)
class StoredTry:
    """A try with all that its verification needs."""

    cell: CellResults
    record: TryRecord
    evidence: bytes
    inputs: Mapping[str, bytes]

    @property
    def group(self) -> tuple[str, str]:
        """Tries of one task that saw the same inputs share a container."""
        joined = "".join(f"{name}\0{sha256_hex(self.inputs[name])}\n" for name in self.inputs)
        return self.cell.task, joined


async def regrade(
    engine: Engine,
    store: Store,
    lock: Lock,
    results: SweepResults,
    present: Mapping[str, PresentTask],
    kit: Path,
    told: Callable[[int, int], None] = lambda done, of: None,
) -> Regrade:
    """Verifies every try that counts, or was lost to its verifier, once more.

    Args:
        engine: where verifiers run.
        store: of the sweep.
        lock: the one in force.
        results: of the tasks that are wanted.
        present: whole task name to the task as it is now.
        kit: the verifier kit.
        told: of tries done and how many there are.

    Raises:
        ContainerError: the engine cannot be reached at all.
        StoreError: the store refused.
    """
    stored, left = await asyncio.to_thread(_read, store, results, present)
    batches = [*_batches(stored)]
    slots = asyncio.Semaphore(os.cpu_count() or 1)
    images: dict[str, asyncio.Future[str]] = {}
    base = None if lock.base_image is None else lock.base_image.reference
    done = 0

    async def image_of(name: str) -> str:
        if name not in images:
            place = present[name]
            images[name] = asyncio.ensure_future(
                ensure_task_image(engine, place.folder, place.task, lock.sweep, base)
            )
        return await images[name]

    async def run(batch: Sequence[StoredTry]) -> list[Regraded | NotRegraded]:
        nonlocal done
        async with slots:
            name = batch[0].cell.task
            try:
                image = await image_of(name)
            except ContainerError as error:
                rows: list[Regraded | NotRegraded] = [
                    _left_out(each.cell, each.record, f"image: {error}") for each in batch
                ]
            else:
                rows = await _judged(engine, image, present[name], kit, batch)
        done += len(batch)
        told(done, len(stored))
        return rows

    told(0, len(stored))
    found = [row for rows in await asyncio.gather(*map(run, batches)) for row in rows]
    old = {task.name: task.digest for task in lock.tasks}
    return Regrade(
        sweep=lock.sweep,
        at=f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}",
        tasks=tuple(
            RegradedTask(task=name, old_digest=old[name], new_digest=each.task.digest)
            for name, each in sorted(present.items())
            if name in old
        ),
        regraded=tuple(row for row in found if isinstance(row, Regraded)),
        left_out=(*left, *(row for row in found if isinstance(row, NotRegraded))),
    )


def regrade_key(sweep: str, at: str) -> str:
    """The store's key of a regrade: beside the report, never instead of a verdict."""
    return f"sweeps/{sweep}/regrades/{at.replace('-', '').replace(':', '')}.json"


def keep(store: Store, made: Regrade) -> str:
    """Writes a regrade under its time, and never over another; blocks.

    Returns:
        Its key.

    Raises:
        StoreError: the store refused.
    """
    first = regrade_key(made.sweep, made.at)
    key, number = first, 1
    while not store.create(key, made.to_json().encode() + b"\n"):
        number += 1
        key = f"{first.removesuffix('.json')}-{number}.json"
    return key


def verdict_now(before: TryRecord, said: Verdict) -> Outcome:
    """The verdict that a try would have with what its verifier says now.

    An agent that was stopped at its deadline has failed whatever it had answered by then.
    """
    if said.fault:
        return Outcome.INVALID
    if before.cause is Cause.AGENT_TIMEOUT:
        return Outcome.FAIL
    return Outcome.PASS if said.dimensions["reward"] == 1.0 else Outcome.FAIL


async def _judged(
    engine: Engine, image: str, place: PresentTask, kit: Path, batch: Sequence[StoredTry]
) -> list[Regraded | NotRegraded]:
    try:
        said = await judge(
            engine,
            image,
            place.folder,
            kit,
            place.task,
            [each.evidence for each in batch],
            batch[0].inputs,
            sweep=batch[0].record.sweep,
        )
    except ContainerTimeoutError as error:
        if len(batch) == 1:
            return [_left_out(batch[0].cell, batch[0].record, str(error))]
        # One that never ends must not take the word of the others.
        rows = [await _judged(engine, image, place, kit, [each]) for each in batch]
        return [row for single in rows for row in single]
    except ContainerError as error:
        return [_left_out(each.cell, each.record, str(error)) for each in batch]
    return [_compared(each, word, place.task) for each, word in zip(batch, said, strict=True)]


def _compared(stored: StoredTry, said: Verdict, task: Task) -> Regraded:
    before = stored.record
    now = {name: value for name, value in said.dimensions.items() if name != "reward"}
    names = dict.fromkeys((*before.dimensions, *now))
    moved = {
        name: (before.dimensions.get(name), now.get(name))
        for name in names
        if before.dimensions.get(name) != now.get(name)
    }
    verdict = verdict_now(before, said)
    return Regraded(
        task=stored.cell.task,
        condition=stored.cell.condition,
        attempt=before.attempt,
        try_=before.try_,
        old_digest=before.digests.task,
        new_digest=task.digest,
        old_verdict=before.verdict,
        new_verdict=verdict,
        old_reward=before.reward,
        new_reward=said.dimensions.get("reward"),
        moved={} if said.fault else moved,
        fault=said.fault,
        changed=verdict is not before.verdict,
    )


def _read(
    store: Store, results: SweepResults, present: Mapping[str, PresentTask]
) -> tuple[list[StoredTry], tuple[NotRegraded, ...]]:
    """The tries with what they need, and those that lack it; blocks."""
    tries = [
        (cell, attempt) for cell in results.cells for attempt in cell.attempts if attempt.tries
    ]
    with ThreadPoolExecutor(READERS, thread_name_prefix="regrade") as pool:
        rows = list(pool.map(lambda each: _read_try(store, each[0], each[1], present), tries))
    return (
        [row for row in rows if isinstance(row, StoredTry)],
        tuple(row for row in rows if isinstance(row, NotRegraded)),
    )


def _read_try(
    store: Store,
    cell: CellResults,
    attempt: AttemptResults,
    present: Mapping[str, PresentTask],
) -> StoredTry | NotRegraded:
    record = attempt.last
    assert record is not None  # attempts that were tried
    if attempt.result is None and record.blame is not Blame.TASK:
        reason = f"invalid ({record.blame}: {record.cause}): it has no evidence to judge"
        return _left_out(cell, record, reason)
    place = present.get(cell.task)
    if place is None:
        return _left_out(cell, record, "there is no task of this name in the data set now")
    if place.task.fixture is None:
        return _left_out(cell, record, "it is graded in its container, which is not kept")
    prefix = try_prefix(record.sweep, record.attempt, record.try_)
    wanted = (EVIDENCE, *(f"inputs{path}" for path in place.task.fixture.verifier_inputs))
    found = {}
    for name in wanted:
        try:
            found[name] = store.get(f"{prefix}/{name}")
        except MissingKeyError:
            return _left_out(cell, record, f"{name} is not stored")
        digest = record.files.get(name)
        if digest is not None and sha256_hex(found[name]) != digest:
            return _left_out(cell, record, f"{name} is not the file that its record names")
    return StoredTry(
        cell=cell,
        record=record,
        evidence=found.pop(EVIDENCE),
        inputs={name.removeprefix("inputs"): data for name, data in sorted(found.items())},
    )


def _batches(stored: Sequence[StoredTry]) -> Iterator[list[StoredTry]]:
    groups: defaultdict[tuple[str, str], list[StoredTry]] = defaultdict(list)
    for each in stored:
        groups[each.group].append(each)
    for group in groups.values():
        for start in range(0, len(group), BATCH):
            yield group[start : start + BATCH]


def _left_out(cell: CellResults, record: TryRecord, reason: str) -> NotRegraded:
    return NotRegraded(
        task=cell.task,
        condition=cell.condition,
        attempt=record.attempt,
        try_=record.try_,
        reason=reason,
    )
