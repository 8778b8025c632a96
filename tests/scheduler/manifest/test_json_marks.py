from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.manifest.faults import ManifestError, Mark
from scheduler.manifest.json_marks import read_json


def test_values_and_keys_carry_line_and_column() -> None:
    document = read_json('{\n\t"a": 1,\n\t"b": ["x", {"c": true}]\n}\n', "f.json")
    assert document.data == {"a": 1, "b": ["x", {"c": True}]}
    assert document.keys["b",] == Mark(3, 2)
    assert document.values["a",] == Mark(2, 7)
    assert document.keys["b", 1, "c"] == Mark(3, 14)


@pytest.mark.parametrize(
    ("text", "line", "field", "words"),
    [
        ("", 1, "", "not JSON: Expecting value"),
        ('{\n"a": 1,\n"a": 2}', 3, "a", "stands twice; the first is on line 2"),
        ('{"a": 1,}', 1, "", "expected a key in double quotes"),
        ("{'a': 1}", 1, "", "expected a key in double quotes"),
        ('{"a" 1}', 1, "", "expected ':'"),
        ('{"a": 1\n"b": 2}', 2, "", "expected ','"),
        ('{"a": [1 2]}', 1, "a", "expected ','"),
        ('{"a": [1,]}', 1, "a[1]", "Expecting value"),
        ('{"a": NaN}', 1, "a", "not finite"),
        ('{"a": -Infinity}', 1, "a", "not finite"),
        ('{"a": 1e999}', 1, "a", "must be finite"),
        ('{"a": ' + "9" * 5000 + "}", 1, "a", "cannot be read"),
        ('{"a": "\\ud800"}', 1, "a", "half of a surrogate pair"),
        ('{"a": "x\ny"}', 1, "a", "not JSON"),
        ('{"a": 1} x', 1, "", "text after the document's end"),
        ('{"a": 1}\n{"b": 2}', 2, "", "text after the document's end"),
        ('{"a": tru}', 1, "a", "Expecting value"),
        ("[" * 100_000, 1, "", "levels deep"),
        ('{"a":' * 5000, 1, "", "levels deep"),
        ("[" + "0," * 50_001 + "0]", 1, "", "more than 50000 values"),
    ],
)
def test_refuses(text: str, line: int, field: str, words: str) -> None:
    with pytest.raises(ManifestError) as caught:
        read_json(text, "f.json")
    fault = caught.value.faults[0]
    assert (fault.line, fault.field) == (line, field)
    assert words in fault.message


PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8")),
    lambda inner: st.lists(inner) | st.dictionaries(st.text('ab\n"é', max_size=4), inner),
    max_leaves=20,
)


@given(PLAIN, st.sampled_from([None, 2, "\t"]), st.booleans())
def test_reads_what_the_standard_reader_reads(data: Any, indent: Any, ascii_only: bool) -> None:
    text = json.dumps(data, indent=indent, ensure_ascii=ascii_only)
    assert read_json(text, "f").data == data


@given(st.text('{}[]",:0123456789.eE+-truefalsn \n\\', max_size=40))
def test_accepts_exactly_what_the_standard_reader_accepts(text: str) -> None:
    def refuse(name: str) -> Any:
        raise ValueError(name)

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len({key for key, _ in pairs}) < len(pairs):
            raise ValueError("twice")
        return dict(pairs)

    try:
        expected = json.loads(text, parse_constant=refuse, object_pairs_hook=once)
        expected = json.loads(json.dumps(expected, allow_nan=False))
    except ValueError:
        with pytest.raises(ManifestError):
            read_json(text, "f")
    else:
        assert read_json(text, "f").data == expected
