from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from workers.contract.base import FormatError, Strict, canonical_json, sha256_file, sha256_hex


class Point(Strict):
    x: int
    y: float = 0.0
    tags: tuple[str, ...] = ()


def test_reads_and_writes_one_line_with_sorted_keys() -> None:
    point = Point.from_json('{"tags": ["a"], "x": 1}', "p")
    assert point.to_json() == '{"tags": ["a"], "x": 1, "y": 0.0}'
    assert Point.from_json(point.to_json(), "p") == point


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("{", "p: document: Invalid JSON"),
        ('{"x": "1"}', "p: x: Input should be a valid integer, found '1'"),
        ("{}", "p: x: Field required"),
        ('{"x": 1, "z": 2}', "p: z: Extra inputs are not permitted"),
        ('{"x": 1, "tags": [1]}', "p: tags.0: Input should be a valid string"),
        ('{"x": 1, "y": NaN}', "p: y: Input should be a finite number"),
    ],
)
def test_names_the_document_and_the_place(text: str, told: str) -> None:
    with pytest.raises(FormatError) as caught:
        Point.from_json(text, "p")
    assert str(caught.value).startswith(told)


def test_values_are_frozen() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        Point(x=1).x = 2  # type: ignore[misc]


@given(st.dictionaries(st.text(max_size=4), st.integers() | st.text(max_size=4), max_size=5))
def test_canonical_json_has_one_form(data: dict[str, Any]) -> None:
    try:
        first = canonical_json(data)
    except UnicodeEncodeError:
        return
    assert canonical_json(dict(reversed(list(data.items())))) == first
    assert json.loads(first) == data


def test_canonical_json_refuses_nan() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        canonical_json(float("nan"))


def test_hashes_of_bytes_and_files_agree(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"abc" * 100_000)
    assert sha256_file(path) == sha256_hex(path.read_bytes())
