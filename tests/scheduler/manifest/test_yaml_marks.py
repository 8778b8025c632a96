from __future__ import annotations

import time
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from scheduler.manifest.faults import ManifestError, Mark
from scheduler.manifest.yaml_marks import read_yaml


def test_values_and_keys_carry_line_and_column() -> None:
    document = read_yaml("a: 1\nb:\n  - x\n  - c: true\n", "f.yaml")
    assert document.data == {"a": 1, "b": ["x", {"c": True}]}
    assert document.keys["b",] == Mark(2, 1)
    assert document.values["b", 0] == Mark(3, 5)
    assert document.keys["b", 1, "c"] == Mark(4, 5)
    assert document.values["b", 1, "c"] == Mark(4, 8)


@pytest.mark.parametrize(
    ("text", "data"),
    [
        ("", None),
        ("# nothing\n", None),
        ("a: &x [1, 2]\nb: *x\n", {"a": [1, 2], "b": [1, 2]}),
        (
            "base: &x {p: 1, q: 2}\nmine: {<<: *x, q: 3}\n",
            {"base": {"p": 1, "q": 2}, "mine": {"p": 1, "q": 3}},
        ),
        ("mine: {q: 3, <<: [{p: 1, q: 2}, {p: 9, r: 4}]}\n", {"mine": {"p": 1, "q": 3, "r": 4}}),
        (
            "a: 010\nb: 1e3\nc: 1.5e+3\nd: ~\ne: yes\n",
            {"a": 8, "b": "1e3", "c": 1500.0, "d": None, "e": True},
        ),
        ("a: 'ünï → 😀'\n", {"a": "ünï → 😀"}),
        ("a: {}\nb: []\n", {"a": {}, "b": []}),
    ],
)
def test_reads_what_the_safe_loader_reads(text: str, data: Any) -> None:
    assert read_yaml(text, "f").data == data == yaml.safe_load(text)


LAUGHS = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{name}: &{name} [{','.join([f'*{before}'] * 9)}]\n"
    for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.mark.parametrize(
    ("text", "line", "field", "words"),
    [
        ("a: 1\nb: 2\na: 3\n", 3, "a", "stands twice; the first is on line 1"),
        ("r:\n  - {x: 1, x: 2}\n", 2, "r[0].x", "stands twice"),
        ("a:\n  when: 2026-08-01\n", 2, "a.when", "a date is not plain data: put it in quotes"),
        ("a: 2026-08-01 10:00:00\n", 1, "a", "a date"),
        ("a: .nan\n", 1, "a", "must be finite"),
        ("\na: -.inf\n", 2, "a", "must be finite"),
        ("a: 1e999\nb: 1.0e+999\n", 2, "b", "must be finite"),
        (f"a: {'9' * 5000}\n", 1, "a", "cannot be read"),
        ("a: !!binary aGk=\n", 1, "a", "'binary' are not read"),
        ("a: !!set {x}\n", 1, "a", "'set' are not read"),
        ("a: !!python/object/apply:os.system [ls]\n", 1, "a", "are not read"),
        ("a: !mine 3\n", 1, "a", "'!mine' are not read"),
        ("a: !!int abc\n", 1, "a", "cannot be read"),
        ("5: a\n", 1, "", "a key must be text: put it in quotes"),
        ("yes: a\n", 1, "", "a key must be text"),
        ("? [a, b]\n: c\n", 1, "", "a key must be text"),
        ("a: b: c\n", 1, "", "not YAML: mapping values are not allowed here"),
        ("a: [1, 2\nb: 3\n", 2, "", "not YAML"),
        ("a: 'x\n", 2, "", "not YAML"),
        ("a: *nowhere\n", 1, "", "undefined alias"),
        ("a: 1\n---\nb: 2\n", 2, "", "not YAML: expected a single document"),
        ("a: \x00\n", 1, "", "U+0000 may not stand"),
        ("a: 1\nb: \x07\n", 2, "", "U+0007 may not stand"),
        ("\ta: 1\n", 1, "", "a tab stands where YAML takes spaces only"),
        ("a:\n\tb: 1\n", 2, "", "a tab stands where YAML takes spaces only"),
        ('a: "\\ud800"\n', 1, "a", "half of a surrogate pair"),
        ("a: &a [*a]\n", 1, "", "levels deep"),
        ("a: &a {b: *a}\n", 1, "", "levels deep"),
        ("a: &a {<<: *a}\n", 1, "", "levels deep"),
        ("a: {<<: 3}\n", 1, "a", "'<<' takes in mappings only"),
        ("[" * 100_000, 1, "", "levels deep"),
        ("{a: " * 5000, 1, "", "levels deep"),
        ("- " * 5000 + "x", 1, "", "levels deep"),
        (LAUGHS, 1, "", "aliases written out"),
        (f"a: &a {'x' * 200_000}\nb: [{','.join(['*a'] * 60)}]\n", 1, "", "characters, aliases"),
    ],
)
def test_refuses(text: str, line: int, field: str, words: str) -> None:
    started = time.monotonic()
    with pytest.raises(ManifestError) as caught:
        read_yaml(text, "f.yaml")
    assert time.monotonic() - started < 20
    fault = caught.value.faults[0]
    assert (fault.file, fault.line, fault.field) == ("f.yaml", line, field)
    assert words in fault.message


def test_all_faults_of_a_document_are_told() -> None:
    with pytest.raises(ManifestError) as caught:
        read_yaml("a: 2026-08-01\nb: .inf\nb: 1\n", "f")
    assert [fault.line for fault in caught.value.faults] == [1, 2, 3]


def test_syntax_faults_quote_no_text() -> None:
    with pytest.raises(ManifestError) as caught:
        read_yaml("a: {api_key: sk-secret: x\n", "f")
    assert "sk-secret" not in str(caught.value)


PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=("Cs", "Cc", "Cn"))),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text("abcdé _", max_size=5), inner, max_size=4)
    ),
    max_leaves=15,
)


@given(PLAIN)
def test_whatever_yaml_writes_is_read_back_with_a_mark_for_each_value(data: Any) -> None:
    text = yaml.safe_dump(data, allow_unicode=True)
    document = read_yaml(text, "f")
    assert document.data == data
    assert set(document.values) == set(_places(data, ()))


def _places(data: Any, place: tuple[Any, ...]) -> list[tuple[Any, ...]]:
    children: list[tuple[Any, Any]] = []
    if isinstance(data, dict):
        children = list(data.items())
    elif isinstance(data, list):
        children = list(enumerate(data))
    return [place, *(inner for key, child in children for inner in _places(child, (*place, key)))]
