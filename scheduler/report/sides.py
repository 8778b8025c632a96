"""Two sweeps, or two conditions of one, side by side: what may be compared with what."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from scheduler.lock import Lock, read_locks
from scheduler.report.collect import collect_under
from scheduler.report.results import CellResults, SweepResults
from workers.storage.interface import Store


class NotComparableError(Exception):
    """Two sweeps cannot be compared as asked; the message says why and what could be."""


@dataclass(frozen=True)
class Side:
    """One sweep of a comparison."""

    lock: Lock
    results: SweepResults

    @property
    def sweep(self) -> str:
        """Its id."""
        return self.lock.sweep

    @property
    def conditions(self) -> Mapping[str, str]:
        """Digest to name of every condition that is no canary."""
        return {
            each.digest: each.manifest.condition
            for each in self.lock.conditions
            if each.canary is None
        }

    @property
    def open(self) -> int:
        """Attempts without a result that ``resume`` would go on with; canaries apart."""
        return sum(
            attempt.open
            for cell in self.results.cells
            if cell.canary is None
            for attempt in cell.attempts
        )

    def cells_of(self, digest: str) -> dict[str, CellResults]:
        """Task name to cell, of one condition."""
        return {
            cell.task: cell
            for cell in self.results.cells
            if cell.condition_digest == digest and cell.attempts
        }


@dataclass(frozen=True)
class Pair:
    """A condition of each side, and the cells of the tasks that both have alike."""

    digest_a: str
    digest_b: str
    name_a: str
    name_b: str
    cells: tuple[tuple[CellResults, CellResults], ...]
    """By task, in the order of side a."""
    only_a: tuple[CellResults, ...]
    only_b: tuple[CellResults, ...]
    changed: tuple[tuple[CellResults, CellResults], ...]
    """Of one name, but not the same folder and verifiers: nothing is compared."""

    def of_layer(self, layer: str) -> tuple[tuple[CellResults, CellResults], ...]:
        """The cells of one layer."""
        return tuple((a, b) for a, b in self.cells if a.layer == layer)


def read_side(store: Store, sweep: str) -> Side:
    """A sweep as it stands; blocks.

    Raises:
        LockError: there is no such sweep.
        FormatError: a record is not of this version's format.
        StoreError: the store refused.
    """
    lock = read_locks(store, sweep)[-1]
    return Side(lock, collect_under(store, lock))


def find_condition(side: Side, name: str) -> str:
    """The digest of the condition that a name or the beginning of a digest means.

    Raises:
        NotComparableError: none or several are meant.
    """
    known = side.conditions
    meant = [digest for digest, given in known.items() if given == name]
    if not meant and len(name) >= 6:
        meant = [digest for digest in known if digest.startswith(name)]
    if len(meant) == 1:
        return meant[0]
    listed = ", ".join(sorted(set(known.values()))) or "none"
    if meant:
        digests = ", ".join(digest[:12] for digest in meant)
        raise NotComparableError(
            f"{side.sweep} has {len(meant)} conditions {name!r}: name one by its digest ({digests})"
        )
    raise NotComparableError(f"{side.sweep} has no condition {name!r}; it has {listed}")


def make_pairs(
    a: Side, b: Side, condition_a: str | None = None, condition_b: str | None = None
) -> tuple[Pair, ...]:
    """Which conditions are compared: the ones named, else all of one digest, else of one name.

    Raises:
        NotComparableError: rules differ, no condition fits, or no task is shared.
    """
    if a.lock.scoring.rule != b.lock.scoring.rule:
        raise NotComparableError(
            f"the rules differ: a missing attempt is {a.lock.scoring.rule} in {a.sweep}, "
            f"{b.lock.scoring.rule} in {b.sweep}"
        )
    if a.sweep == b.sweep and condition_a is None and condition_b is None:
        raise NotComparableError(f"{a.sweep} would be compared with itself")
    if condition_a is not None or condition_b is not None:
        first = condition_a if condition_a is not None else condition_b
        second = condition_b if condition_b is not None else condition_a
        assert first is not None and second is not None  # one of the two is given
        chosen = [(find_condition(a, first), find_condition(b, second))]
        if a.sweep == b.sweep and chosen[0][0] == chosen[0][1]:
            raise NotComparableError(f"{first!r} would be compared with itself")
    else:
        chosen = [*_matched(a, b)]
    pairs = tuple(_pair(a, b, *each) for each in chosen)
    if not any(pair.cells for pair in pairs):
        raise NotComparableError(_nothing_shared(a, b, pairs))
    return pairs


def unlike(a: Lock, b: Lock) -> Iterator[str]:
    """What of two sweeps differs though no condition says so, a line each. Pure."""
    facts: tuple[tuple[str, Callable[[Lock], object]], ...] = (
        ("coverage gate", lambda lock: lock.scoring.coverage_gate),
        ("network", lambda lock: lock.network),
        ("relay", lambda lock: _relay(lock)),
        ("agent", lambda lock: lock.agent),
        ("agent's programs", lambda lock: lock.buzz and lock.buzz.digest[:12]),
        ("pass threshold", lambda lock: lock.scoring.pass_threshold),
        ("timeout multipliers", lambda lock: _multipliers(lock)),
        ("base image", lambda lock: lock.base_image and _image(lock)),
        ("tries of an attempt", lambda lock: lock.limits.max_tries),
        ("cores of the planning machine", lambda lock: lock.profile.cpus),
        ("trials at once", lambda lock: lock.profile.n_concurrent),
        ("CPU overcommit", lambda lock: lock.limits.cpu_overcommit),
        ("memory overcommit", lambda lock: lock.limits.memory_overcommit),
        ("Apiary's version", lambda lock: lock.versions.apiary),
    )
    for name, of in facts:
        if of(a) != of(b):
            yield f"{name}: {_said(of(a))} and {_said(of(b))}"
    for name in a.endpoints.keys() & b.endpoints.keys():
        one, other = a.endpoints[name], b.endpoints[name]
        if (one.provider, one.base_url, one.model) != (other.provider, other.base_url, other.model):
            yield f"endpoint {name}: another provider, address or model"


def _relay(lock: Lock) -> str:
    if lock.relay == "embedded":
        return lock.relay
    seen = lock.relay_seen
    said = () if seen is None else (seen.name or "", seen.version or "")
    return " ".join((lock.relay.url, *filter(None, said)))


def _multipliers(lock: Lock) -> str:
    told = lock.timeout_multipliers.model_dump()
    return ", ".join(f"{name} {each:g}" for name, each in told.items() if each != 1) or "1"


def _matched(a: Side, b: Side) -> Iterator[tuple[str, str]]:
    left = dict(b.conditions)
    waiting = []
    for digest, name in a.conditions.items():
        if digest in left:
            del left[digest]
            yield digest, digest
        else:
            waiting.append((digest, name))
    for digest, name in waiting:
        named = [other for other, other_name in left.items() if other_name == name]
        if len(named) == 1:
            del left[named[0]]
            yield digest, named[0]


def _pair(a: Side, b: Side, digest_a: str, digest_b: str) -> Pair:
    cells_a, cells_b = a.cells_of(digest_a), b.cells_of(digest_b)
    both = [(cells_a[task], cells_b[task]) for task in cells_a if task in cells_b]
    return Pair(
        digest_a=digest_a,
        digest_b=digest_b,
        name_a=a.conditions[digest_a],
        name_b=b.conditions[digest_b],
        cells=tuple((x, y) for x, y in both if x.task_digest == y.task_digest),
        changed=tuple((x, y) for x, y in both if x.task_digest != y.task_digest),
        only_a=tuple(cell for task, cell in cells_a.items() if task not in cells_b),
        only_b=tuple(cell for task, cell in cells_b.items() if task not in cells_a),
    )


def _nothing_shared(a: Side, b: Side, pairs: tuple[Pair, ...]) -> str:
    if not pairs:
        names = [", ".join(side.conditions.values()) or "none" for side in (a, b)]
        return (
            f"no condition is in both sweeps by digest or name: {a.sweep} has {names[0]}, "
            f"{b.sweep} has {names[1]}; name them with --condition-a and --condition-b"
        )
    changed = sum(len(pair.changed) for pair in pairs)
    if changed:
        return (
            f"{a.sweep} and {b.sweep} share no task: {changed} of the same name have other "
            "digests, so another folder or other verifiers; `apiary regrade` shows what it changes"
        )
    return f"{a.sweep} and {b.sweep} share no task"


def _image(lock: Lock) -> str:
    image = lock.base_image
    return "" if image is None else image.digest or image.reference


def _said(value: object) -> str:
    return "not given" if value is None else str(value)
