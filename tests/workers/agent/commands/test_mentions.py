"""The rules of who is mentioned, as a table; the numbers are those of the traps in the spec."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workers.agent.commands import mentions
from workers.agent.commands.mentions import Unresolved, blank_code, name_table, named

JANE, BOB, T1, T2 = "a" * 64, "b" * 64, "c" * 64, "d" * 64
TABLE = name_table(
    [
        (JANE, "Jane Q. Doe"),
        (BOB, "bob"),
        (T1, "Taylor"),
        (T2, "taylor"),
        ("e" * 64, ""),
        ("f" * 64, "Jane"),
    ]
)


@pytest.mark.parametrize(
    ("text", "keys", "unresolved"),
    [
        ("@bob", [BOB], []),
        ("hello @BOB!", [BOB], []),
        ("@Jane Q. Doe, please", [JANE], []),
        ("@jane q. doe", [JANE], []),
        ("@Jane Qx", ["f" * 64], []),
        ("(@bob)", [], []),
        ("x@bob", [], []),
        ("mail bob@bob.example", [], []),
        ("\u00e9@bob", [], []),
        ("\u00a0@bob", [], []),
        ("line\n@bob", [BOB], []),
        ("\t@bob\t", [BOB], []),
        ("@bob.", [BOB], []),
        ("@bob.x", [BOB], []),
        ("@bob}", [BOB], []),
        ("@bob-x", [], [Unresolved("bob-x")]),
        ("@bob\u2014done", [BOB], []),
        ("@nobody.", [], [Unresolved("nobody.")]),
        ("@alice, hi", [], [Unresolved("alice")]),
        ("@ bob", [], []),
        ("@@bob", [], []),
        ("@Taylor", [], [Unresolved("Taylor", (T1, T2))]),
        ("@bob @bob", [BOB, BOB], []),
        ("@bob and @nobody", [BOB], [Unresolved("nobody")]),
        ("", [], []),
    ],
)
def test_names(text: str, keys: list[str], unresolved: list[Unresolved]) -> None:
    assert named(text, TABLE) == (keys, unresolved)


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("say `@bob` now", "say        now"),
        ("a ``x`@bob`` b", "a            b"),
        ("a ` b\n@bob ` c", "a ` b\n@bob ` c"),
        ("```\n@bob\n```\n@jane", "   \n    \n   \n@jane"),
        ("  ```py\n@bob", "       \n    "),
        ("text ``` @bob", "text ``` @bob"),
        ("no code @bob", "no code @bob"),
    ],
)
def test_code_notifies_nobody(text: str, left: str) -> None:
    assert blank_code(text) == left


@given(st.text(alphabet="`@b\n \r x", max_size=60))
def test_blanking_keeps_every_place(text: str) -> None:
    blanked = blank_code(text)
    assert len(blanked) == len(text)
    assert all(new in (old, " ") for old, new in zip(text, blanked, strict=True))
    assert blanked.count("\n") == text.count("\n")


@given(st.text(alphabet="@bobJane Q.Doe,x\n", max_size=60))
def test_names_never_come_from_the_middle_of_a_word(text: str) -> None:
    keys, unresolved = named(text, TABLE)
    starts = [
        i for i, c in enumerate(text) if c == "@" and (i == 0 or text[i - 1] in " \t\n\r\v\f")
    ]
    assert len(keys) + len(unresolved) <= len(starts)


def test_npub_references() -> None:
    text = "see nostr:npub1qqqsyq and npub1zzz, nostr:note1abc"
    assert mentions.npub_references(text) == ["npub1qqqsyq"]


def test_merging_keeps_the_first_place() -> None:
    assert mentions.merge(["a", "b"], ["b", "c"], ["a"]) == ["a", "b", "c"]
