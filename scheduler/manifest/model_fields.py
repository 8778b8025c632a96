"""Which fields a model has at a place, found from its annotations."""

from __future__ import annotations

import types
from collections.abc import Iterator
from typing import Annotated, Any, Union, get_args, get_origin

import pydantic

from scheduler.manifest.faults import Place, field_text


def fields_at(model: type[pydantic.BaseModel], place: Place) -> tuple[str, ...]:
    """The names that a mapping at the place may have; none where any key is fine."""
    found = _model_at(model, place)
    return () if found is None else _names(found)


def place_of(model: type[pydantic.BaseModel], name: str) -> str | None:
    """Where in the whole format a field of that name stands, if in exactly one place."""
    places = [field_text(place) for place in _walk(model, (), 0) if place[-1] == name]
    return places[0] if len(places) == 1 else None


def all_places(model: type[pydantic.BaseModel]) -> tuple[Place, ...]:
    """Where every field of a format stands; indexes and free keys are left out."""
    return tuple(_walk(model, (), 0))


def _names(model: type[pydantic.BaseModel]) -> tuple[str, ...]:
    return tuple(field.alias or name for name, field in model.model_fields.items())


def _model_at(annotation: Any, place: Place) -> type[pydantic.BaseModel] | None:
    for part in place:
        annotation = _step(_bare(annotation), part)
    annotation = _bare(annotation)
    return annotation if _is_model(annotation) else None


def _step(annotation: Any, part: str | int) -> Any:
    if _is_model(annotation):
        for name, field in annotation.model_fields.items():
            if part in (name, field.alias):
                return field.annotation
        return None
    arguments = get_args(annotation)
    if get_origin(annotation) is dict:
        return arguments[1]
    if get_origin(annotation) in (tuple, list):
        return arguments[0]
    return None


def _bare(annotation: Any) -> Any:
    """The annotation less ``Annotated``, ``| None`` and root models."""
    while True:
        origin = get_origin(annotation)
        if origin is Annotated:
            annotation = get_args(annotation)[0]
        elif origin in (Union, types.UnionType):
            options = [part for part in get_args(annotation) if part is not type(None)]
            # Of a word and a mapping only the mapping has fields.
            mappings = [part for part in options if _is_model(_bare(part))]
            chosen = options if len(options) == 1 else mappings
            if len(chosen) != 1:
                return None
            annotation = chosen[0]
        elif _is_model(annotation) and issubclass(annotation, pydantic.RootModel):
            annotation = annotation.model_fields["root"].annotation
        else:
            return annotation


def _is_model(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, pydantic.BaseModel)


def _walk(annotation: Any, place: Place, depth: int) -> Iterator[Place]:
    annotation = _bare(annotation)
    if depth > 10:
        return
    if _is_model(annotation):
        for name, field in annotation.model_fields.items():
            here = (*place, field.alias or name)
            yield here
            yield from _walk(field.annotation, here, depth + 1)
    elif get_origin(annotation) in (tuple, list, dict):
        inner = get_args(annotation)[1 if get_origin(annotation) is dict else 0]
        yield from _walk(inner, place, depth + 1)
