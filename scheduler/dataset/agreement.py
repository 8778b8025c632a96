"""Whether a task's files tell the same facts. Pure but for reading the files."""

from __future__ import annotations

from collections.abc import Iterator

from scheduler.dataset.places import PlaceError, Scalar, TaskTexts, stands_in, written
from scheduler.dataset.proof import Fact


def disagreements(facts: tuple[Fact, ...], texts: TaskTexts) -> list[str]:
    """What differs, one line each; empty: all facts agree."""
    found: list[str] = []
    for fact in facts:
        try:
            found.extend(f"{fact.what}: {line}" for line in _differences(fact, texts))
        except PlaceError as error:
            found.append(f"{fact.what}: {error}")
    return found


def _differences(fact: Fact, texts: TaskTexts) -> Iterator[str]:
    source = fact.values if isinstance(fact.values, str) else "the proof"
    values: list[Scalar] = (
        texts.values(fact.values) if isinstance(fact.values, str) else list(fact.values)
    )
    if not values:
        yield f"{source} has no value"
    for place in fact.equal:
        others = texts.values(place)
        if [written(value) for value in values] != [written(value) for value in others]:
            yield f"{source} has {_listed(values)}, {place} has {_listed(others)}"
    for place in fact.stands_in:
        text = texts.text(place)
        missing = [value for value in values if not stands_in(value, text)]
        if missing:
            yield f"{_listed(missing)} ({source}) does not stand in {place}"
    for place in fact.absent_from:
        text = texts.text(place)
        present = [value for value in values if stands_in(value, text)]
        if present:
            yield f"{_listed(present)} ({source}) stands in {place}, and must not"


def _listed(values: list[Scalar]) -> str:
    return ", ".join(repr(written(value)) for value in values) or "nothing"
