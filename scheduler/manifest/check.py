"""A document against its strict model: each refusal with its line, field and nearest name."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import pydantic

from scheduler.manifest.document import Document
from scheduler.manifest.faults import ManifestError, ManifestFault, Place, nearest_name
from scheduler.manifest.model_fields import fields_at, place_of

Model = TypeVar("Model", bound=pydantic.BaseModel)

_EXPECTED: dict[str, str] = {
    "string_type": "expected text",
    "int_type": "expected a whole number",
    "int_from_float": "expected a whole number",
    "int_parsing_size": "expected a whole number of usual size",
    "float_type": "expected a number",
    "bool_type": "expected true or false",
    "dict_type": "expected a mapping",
    "model_type": "expected a mapping",
    "model_attributes_type": "expected a mapping",
    "tuple_type": "expected a list",
    "list_type": "expected a list",
    "finite_number": "expected a finite number",
    "string_too_short": "expected text that is not empty",
    "string_pattern_mismatch": "expected text of the form {pattern}",
    "literal_error": "expected {expected}",
    "greater_than": "expected a number greater than {gt}",
    "greater_than_equal": "expected a number of at least {ge}",
    "less_than": "expected a number less than {lt}",
    "less_than_equal": "expected a number of at most {le}",
    "too_short": "expected at least {min_length}",
}
_QUOTED = re.compile(r"'([^']*)'")
_WORD = re.compile(r"[a-z][a-z0-9_]*")


def check(model: type[Model], document: Document, *, show_values: bool = True) -> Model:
    """The document's data as a checked, frozen value.

    Args:
        model: what the document must be.
        document: what was read.
        show_values: whether a fault may quote what was found; not where a secret may have
            been written by mistake.

    Raises:
        ManifestError: with every fault of the document.
    """
    if not isinstance(document.data, dict):
        found = "nothing" if document.data is None else _found(document.data)
        raise ManifestError([document.fault((), f"expected a mapping, found {found}")])
    faults: list[ManifestFault] = []
    try:
        # By way of JSON: there a strict tuple takes a list, a strict float takes 3.
        return model.model_validate_json(json.dumps(document.data, allow_nan=False))
    except pydantic.ValidationError as error:
        details = error.errors(include_url=False)
        faults.extend(
            _fault(model, document, detail, show_values)
            for detail in details
            if not _follows(detail, details)
        )
    # Outside the handler: the foreign error quotes values, so it may not go with ours.
    raise ManifestError(faults)


def _follows(detail: Mapping[str, Any], details: Sequence[Mapping[str, Any]]) -> bool:
    """Whether a fault only follows from others: a list is too short for its refused items."""
    place = detail["loc"]
    return detail["type"] == "too_short" and any(
        len(other["loc"]) > len(place) and other["loc"][: len(place)] == place for other in details
    )


def _fault(
    model: type[pydantic.BaseModel],
    document: Document,
    detail: Mapping[str, Any],
    show_values: bool,
) -> ManifestFault:
    place: Place = tuple(part for part in detail["loc"] if not _is_aside(part))
    kind, context = str(detail["type"]), detail.get("ctx", {})
    if kind == "extra_forbidden":
        return _unknown_field(model, document, place)
    if kind == "missing":
        return document.fault(place, "this field is required and is not there")
    if kind == "value_error":
        message = str(context["error"])
        return document.fault(_named_field(model, document, place, message), message)
    message = _expectation(kind, context, str(detail["msg"]))
    found = detail.get("input")
    nearest = None
    if kind == "literal_error" and isinstance(found, str):
        nearest = nearest_name(found, _QUOTED.findall(str(context["expected"])))
    if show_values:
        message += f", found {_found(found)}"
        if kind == "string_type" and isinstance(found, bool | int | float):
            message += ": put it in quotes"
    return document.fault(place, message, nearest)


def _is_aside(part: str | int) -> bool:
    """Whether a part of a place is a note of the checker: a key, or one of several kinds."""
    return isinstance(part, str) and part.startswith("[") and part.endswith("]")


def _expectation(kind: str, context: Mapping[str, Any], fallback: str) -> str:
    template = _EXPECTED.get(kind)
    if template is None:
        return fallback
    plain = {name: f"{v:g}" if isinstance(v, float) else v for name, v in context.items()}
    return template.format(**plain)


def _unknown_field(
    model: type[pydantic.BaseModel], document: Document, place: Place
) -> ManifestFault:
    name = str(place[-1])
    names = fields_at(model, place[:-1])
    present = _value_at(document.data, place[:-1])
    absent = [field for field in names if not isinstance(present, dict) or field not in present]
    nearest = nearest_name(name, absent) or place_of(model, name) or nearest_name(name, names)
    known = f"expected one of {', '.join(names)}" if nearest is None else "no such field here"
    return document.fault(place, f"unknown field: {known}", nearest)


def _named_field(
    model: type[pydantic.BaseModel], document: Document, place: Place, message: str
) -> Place:
    """The field of a broken rule: our rules name it first, the model at the place has it."""
    names = fields_at(model, place)
    present = _value_at(document.data, place)
    if not isinstance(present, dict):
        return place
    for word in _WORD.findall(message):
        if word in names and word in present:
            return (*place, word)
    return place


def _value_at(data: Any, place: Place) -> Any:
    for part in place:
        try:
            data = data[part]
        except (KeyError, IndexError, TypeError):
            return None
    return data


def _found(value: Any) -> str:
    """A value in a few words."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list | tuple):
        return "a list" if value else "an empty list"
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}…"
