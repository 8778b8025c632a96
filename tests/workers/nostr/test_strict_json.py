"""JSON as the protocol means it."""

from __future__ import annotations

import contextlib
import gc

import pytest

from workers.nostr.errors import JsonError
from workers.nostr.strict_json import dump, parse


@pytest.mark.parametrize(
    "text",
    ["", "{", "NaN", "[Infinity]", "-Infinity", "[" * 200_000, "1" * 5000, b"\xff", "\ufeff[]"],
)
def test_what_is_not_json_is_refused(text: str | bytes) -> None:
    with pytest.raises(JsonError):
        parse(text)


def test_bytes_are_utf8_and_nothing_else() -> None:
    assert parse('["é"]'.encode()) == ["é"]
    with pytest.raises(JsonError):
        parse('["é"]'.encode("utf-16"))


@pytest.mark.parametrize("text", ['{"a":1,"a":1}', '[{"x":{"a":1,"a":2}}]'])
def test_2_14_a_key_named_twice_is_refused_on_request(text: str) -> None:
    assert parse(text)
    with pytest.raises(JsonError):
        parse(text, unique_keys=True)


def test_the_compact_form() -> None:
    assert dump(["é", 1, {"a": None}]) == '["é",1,{"a":null}]'
    with pytest.raises(ValueError, match="Out of range"):
        dump(float("nan"))


def test_no_finalizer_is_run_at_the_bottom_of_the_stack() -> None:
    def has_room(frames: int) -> bool:
        return frames == 0 or has_room(frames - 1)

    class Cycle:
        def __init__(self) -> None:
            self.own = self

        def __del__(self) -> None:
            try:
                finalized.append(has_room(400))
            except RecursionError:
                finalized.append(False)

    finalized: list[bool] = []
    # Whatever else the process holds is left aside: to look through it takes half a second.
    gc.freeze()
    try:
        for depth in range(600, 1100, 5):
            gc.collect()
            Cycle()
            with contextlib.suppress(JsonError):
                parse("[" * depth + "]" * depth)
            assert gc.isenabled()
        gc.collect()
    finally:
        gc.unfreeze()
    assert finalized == [True] * 100
