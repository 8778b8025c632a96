from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workers.storage import InvalidKeyError
from workers.storage.keys import check_key, check_prefix, is_key


def test_a_keys_parts() -> None:
    assert check_key("a") == ("a",)
    assert check_key("sweeps/x y/ü.json") == ("sweeps", "x y", "ü.json")
    assert check_key("...") == ("...",)


@pytest.mark.parametrize(
    ("prefix", "expected"),
    [
        ("", ((), "")),
        ("a", ((), "a")),
        ("a/", (("a",), "")),
        ("a/b/.", (("a", "b"), ".")),
    ],
)
def test_a_prefixs_parts(prefix: str, expected: tuple[tuple[str, ...], str]) -> None:
    assert check_prefix(prefix) == expected


def test_messages_name_the_key_and_the_reason() -> None:
    with pytest.raises(InvalidKeyError, match=r"'a/\.\./b' has the part '\.\.'"):
        check_key("a/../b")
    with pytest.raises(InvalidKeyError, match=r"U\+000A"):
        check_key("a\nb")
    with pytest.raises(InvalidKeyError, match="over 255 bytes"):
        check_key("ü" * 128)


@given(st.text(max_size=40))
def test_a_key_stays_below_the_root(text: str) -> None:
    if is_key(text):
        parts = check_key(text)
        assert "/".join(parts) == text
        assert not {"", ".", ".."} & set(parts)
        assert not any(char in text for char in "\0\n\\")
        assert all(check_prefix(text[:cut]) for cut in range(len(text) + 1))
