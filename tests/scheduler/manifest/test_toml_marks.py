from __future__ import annotations

import pytest

from scheduler.manifest.faults import ManifestError, Mark
from scheduler.manifest.toml_marks import read_toml


def test_tables_and_keys_carry_their_line() -> None:
    text = (
        'top = 1\n\n[task]\nname = "x"\n[agent.more]\nlimit = 2\n[[list]]\na = 1\n[[list]]\na = 2\n'
    )
    document = read_toml(text, "task.toml")
    assert document.data["list"] == [{"a": 1}, {"a": 2}]
    assert document.keys["top",] == Mark(1, 1)
    assert document.keys["task",] == Mark(3, 1)
    assert document.keys["task", "name"] == Mark(4, 1)
    assert document.keys["agent", "more", "limit"] == Mark(6, 1)
    assert document.keys["list", 1, "a"] == Mark(10, 1)


@pytest.mark.parametrize(
    ("text", "line", "field", "words"),
    [
        ("a = 1\nb = \n", 2, "", "not TOML: Invalid value"),
        ("a = 1\na = 2\n", 2, "", "not TOML: Cannot overwrite a value"),
        ("[t]\n[t]\n", 2, "", "not TOML"),
        ('a = "x', 1, "", "not TOML"),
        ("[t]\nwhen = 2026-08-01\n", 2, "t.when", "a date is not plain data"),
        ("a = nan\n", 1, "a", "must be finite"),
        ("a = [1.0, -inf]\n", 1, "a[1]", "must be finite"),
        ("a = " + "[" * 3000, None, "", "nested too deep"),
    ],
)
def test_refuses(text: str, line: int | None, field: str, words: str) -> None:
    with pytest.raises(ManifestError) as caught:
        read_toml(text, "task.toml")
    fault = caught.value.faults[0]
    assert (fault.line, fault.field) == (line, field)
    assert words in fault.message
