"""``vary`` of a sweep file: one condition manifest to a condition for every combination.

An axis is a field with a list of values, or a name of its own with named variants that set
several fields together. What is varied is laid over the manifest before it is checked, so a
combination that is no sound condition is refused like any manifest, at the line of its value.

*Why a model needs a named variant:* endpoint, revision and prices say together which model it
is and what it costs. A list over one of them would give a model the prices of another.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from scheduler.manifest.document import Document
from scheduler.manifest.faults import (
    FaultList,
    ManifestError,
    Place,
    field_text,
    nearest_name,
)
from scheduler.manifest.model_fields import all_places
from workers.contract.condition import Condition

MOST_COMBINATIONS = 1000
"""Of one condition; a slip in a large matrix should not fill a disk."""

_LABEL = re.compile(r"[A-Za-z0-9._/:-]{1,60}")

_MODEL = ("endpoint", "model_revision")
_FIXED = {("schema_version",), ("condition",), ("roster",), ("roster", "id")}
_BY_NAME = "a model is varied by named variants that set endpoint and model_revision, and prices"


class Setting(NamedTuple):
    """One field of the condition, and what it is set to."""

    place: Place
    source: Place
    """Where the value stands in the sweep file."""
    value: Any


@dataclass(frozen=True)
class Option:
    """One value of an axis, or one named variant."""

    axis: str
    label: str
    """As it stands in the condition's name."""
    place: Place
    settings: tuple[Setting, ...]

    def value(self, place: Place) -> Any:
        """What a field is set to; None where it is not set."""
        return next((each.value for each in self.settings if each.place == place), None)


@dataclass(frozen=True)
class Variant:
    """One combination."""

    name: str
    """Of its condition."""
    label: str
    """Of the combination, for messages."""
    varies: dict[str, str]
    """Axis to the label of its value."""
    document: Document
    """The condition's, with the combination's values in it."""


def variants(
    sweep: Document, place: Place, vary: Mapping[str, Any], base: Document, condition: Condition
) -> tuple[Variant, ...]:
    """Every combination, the last axis turning fastest.

    Args:
        sweep: the sweep file.
        place: where ``vary`` stands in it.
        vary: axis to its values.
        base: the condition manifest's document, which is sound.
        condition: what it says.

    Raises:
        ManifestError: an axis names no field, or combinations cannot be told from each other.
    """
    faults = FaultList()
    known = _Fields(condition)
    axes: list[list[Option]] = []
    for axis, values in vary.items():
        with faults.gathering():
            axes.append(_axis(sweep, (*place, axis), axis, values, known))
    faults.settle()
    count = math.prod(len(axis) for axis in axes)
    if count > MOST_COMBINATIONS:
        message = f"{count} combinations, expected at most {MOST_COMBINATIONS}"
        raise ManifestError([sweep.fault(place, message)])
    _refuse_overlap(sweep, axes)
    _refuse_foreign_prices(sweep, axes, condition)
    return tuple(_variant(sweep, base, condition, options) for options in itertools.product(*axes))


class _Fields:
    """The fields of one condition by what people may call them."""

    def __init__(self, condition: Condition) -> None:
        self._places: dict[str, list[Place]] = {}
        """Every name, also a short one, to the places that it may mean."""
        self._full: dict[Place, str] = {}
        for place in all_places(Condition):
            # Below these two a place has a free key or an index, which a name lacks.
            if place in _FIXED or "prices" in place[:-1] or "skills" in place[:-1]:
                continue
            if place[0] != "roster":
                self._add(place, (field_text(place), str(place[-1])))
                continue
            rest = place[1:]
            for index, entry in enumerate(condition.roster):
                names = (f"roster.{entry.id}.{field_text(rest)}", field_text(rest), str(rest[-1]))
                self._add(("roster", index, *rest), names)

    def _add(self, place: Place, names: Sequence[str]) -> None:
        self._full[place] = names[0]
        for name in dict.fromkeys(names):
            self._places.setdefault(name, []).append(place)

    def find(self, sweep: Document, place: Place, name: str) -> Place:
        """The place that a name means."""
        found = self._places.get(name, [])
        if len(found) == 1:
            return found[0]
        if found:
            full = ", ".join(self._full[each] for each in found)
            raise ManifestError([sweep.fault(place, f"{name!r} may be any of {full}")])
        message = f"{name!r} is no field of a condition that can be varied"
        nearest = nearest_name(name, self._places)
        raise ManifestError([sweep.fault(place, message, nearest)])


def _axis(sweep: Document, place: Place, axis: str, values: Any, known: _Fields) -> list[Option]:
    if isinstance(values, list) and values:
        field = known.find(sweep, place, axis)
        if field[-1] in _MODEL or field[0] == "prices":
            raise ManifestError([sweep.fault(place, _BY_NAME)])
        return [
            _single(sweep, (*place, number), axis, field, value)
            for number, value in enumerate(values)
        ]
    if isinstance(values, dict) and values:
        return [
            _named(sweep, (*place, label), axis, label, fields, known)
            for label, fields in values.items()
        ]
    message = (
        "expected a list of values for a field of this name, or named variants: "
        "a mapping of names to the fields that each sets"
    )
    raise ManifestError([sweep.fault(place, message)])


def _single(sweep: Document, place: Place, axis: str, field: Place, value: Any) -> Option:
    if isinstance(value, dict | list):
        message = "expected text, a number, true, false or null: give anything else a name"
        raise ManifestError([sweep.fault(place, message)])
    text = "unset" if value is None else str(value)
    if not _LABEL.fullmatch(text):
        message = f"{text[:60]!r} would be part of a condition's name: give it a name of its own"
        raise ManifestError([sweep.fault(place, message)])
    label = f"{field[-1]}={text.lower() if isinstance(value, bool) else text}"
    return Option(axis, label, place, (Setting(field, place, value),))


def _named(
    sweep: Document, place: Place, axis: str, label: str, fields: Any, known: _Fields
) -> Option:
    if not _LABEL.fullmatch(label):
        message = "expected a name of letters, digits and . _ - / : with at most 60 characters"
        raise ManifestError([sweep.fault(place, message)])
    if not isinstance(fields, dict) or not fields:
        message = f"expected the fields that variant {label!r} of {axis!r} sets, with their values"
        raise ManifestError([sweep.fault(place, message)])
    settings: list[Setting] = []
    for name, value in fields.items():
        here = (*place, name)
        field = known.find(sweep, here, name)
        if field == ("prices",) and isinstance(value, dict):
            settings += [Setting(("prices", e), (*here, e), p) for e, p in value.items()]
        else:
            settings.append(Setting(field, here, value))
    return Option(axis, label, place, tuple(settings))


def _refuse_overlap(sweep: Document, axes: Sequence[Sequence[Option]]) -> None:
    """A field that is set twice in one combination would be what the last one says."""
    faults = FaultList()
    pairs = [
        pair
        for first, second in itertools.combinations(axes, 2)
        for one, other in itertools.product(first, second)
        for pair in itertools.product(one.settings, other.settings)
    ]
    for option in itertools.chain(*axes):
        pairs += itertools.combinations(option.settings, 2)
    for one, other in pairs:
        if not _overlap(one.place, other.place):
            continue
        # Two agents may be varied over the same models: their prices are said twice.
        if one.place[0] != "prices" or one.value != other.value:
            message = f"{field_text(other.place)} is set by {field_text(one.source)} already"
            faults.add(sweep.fault(other.source, message))
    faults.settle()


def _overlap(one: Place, other: Place) -> bool:
    shorter = min(len(one), len(other))
    return one[:shorter] == other[:shorter]


def _refuse_foreign_prices(
    sweep: Document, axes: Sequence[Sequence[Option]], condition: Condition
) -> None:
    """A varied model has its own endpoint, revision and prices, all three said."""
    faults = FaultList()
    owners: dict[str, Any] = {each.endpoint: each.model_revision for each in condition.roster}
    for option, index in itertools.product(itertools.chain(*axes), range(len(condition.roster))):
        endpoint, revision = (option.value(("roster", index, name)) for name in _MODEL)
        if (endpoint, revision) == (None, None):
            continue
        message = ""
        if endpoint is None or revision is None:
            lacking = _MODEL[0] if endpoint is None else _MODEL[1]
            message = f"does not set {lacking}: {_BY_NAME}"
        elif isinstance(endpoint, str) and option.value(("prices", endpoint)) is None:
            if endpoint not in condition.prices:
                message = f"sets no prices for {endpoint!r}, and the condition has none"
            elif (owner := owners.setdefault(endpoint, revision)) != revision:
                message = (
                    f"sets no prices, and those that the condition has for {endpoint!r} are of "
                    f"{owner!r}, not of {revision!r}"
                )
        if message:
            faults.add(sweep.fault(option.place, f"variant {option.label!r} {message}"))
    faults.settle()


def _variant(
    sweep: Document, base: Document, condition: Condition, options: Sequence[Option]
) -> Variant:
    label = " × ".join(option.label for option in options)
    name = "+".join([condition.condition, *(option.label for option in options)])
    settings = [setting for option in options for setting in option.settings]
    given = {each.place: (each.source, each.value) for each in settings}
    document = base.with_values(sweep, given)
    data = {**document.data, "condition": name}
    if any(each.place[-1] in _MODEL for each in settings) and isinstance(data["prices"], dict):
        # The others' prices are not of this condition: changing one must not change it.
        used = [entry["endpoint"] for entry in data["roster"]]
        data["prices"] = {e: price for e, price in data["prices"].items() if e in used}
    varies = {option.axis: option.label for option in options}
    return Variant(name, label, varies, replace(document, data=data))
