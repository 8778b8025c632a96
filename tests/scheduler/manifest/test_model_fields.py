from __future__ import annotations

from typing import Annotated

from pydantic import Field, RootModel

from scheduler.manifest.model_fields import fields_at, place_of
from workers.contract.base import Strict


class Leaf(Strict):
    try_: int = Field(alias="try")
    other: str | None = None


class Tree(Strict):
    leaf: Leaf | None = None
    leaves: Annotated[tuple[Leaf, ...], Field(min_length=1)]
    named: dict[str, Leaf]
    mixed: int | str = 0
    other: int = 0


class Forest(RootModel[dict[str, Tree]]):
    pass


def test_fields_are_found_through_every_kind_of_annotation() -> None:
    for place in [("leaf",), ("leaves", 3), ("named", "any")]:
        assert fields_at(Tree, place) == ("try", "other")
    assert fields_at(Forest, ("oak", "leaves", 0)) == ("try", "other")
    assert fields_at(Tree, ()) == ("leaf", "leaves", "named", "mixed", "other")


def test_where_any_key_is_fine_there_are_none() -> None:
    for place in [("named",), ("mixed",), ("mixed", 0), ("none", "x"), ("leaf", "try", "x")]:
        assert fields_at(Tree, place) == ()


def test_a_name_has_a_place_if_it_stands_once() -> None:
    class Single(Strict):
        leaf: Leaf

    assert place_of(Single, "try") == "leaf.try"
    assert place_of(Tree, "try") is None
    assert place_of(Tree, "nothing") is None
