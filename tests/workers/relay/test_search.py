"""Full text search (§1.10)."""

from __future__ import annotations

import pytest

from workers.relay.search import parse_search, words_of


@pytest.mark.parametrize(
    ("query", "text", "rank"),
    [
        ("alpha", "Alpha beta", 1),
        ("alpha", "alphabet", 0),
        ("alpha beta", "beta, then ALPHA!", 2),
        ("alpha beta", "alpha", 0),
        ('"alpha beta"', "alpha beta alpha", 1),
        ('"alpha beta"', "beta alpha", 0),
        ("alpha -beta", "alpha", 1),
        ("alpha -beta", "alpha beta", 0),
        ('alpha -"beta gamma"', "alpha gamma beta", 1),
        ("alpha or beta", "beta", 1),
        ("alpha or beta gamma", "beta", 0),
        ("alpha or beta gamma", "beta gamma", 2),
        ("-beta", "alpha", 0),
        ("", "alpha", 0),
        ("!!!", "alpha", 0),
        ("or", "or", 1),
        ("display_name", '{"display_name":"x"}', 1),
        ("élan", "ÉLAN vital", 1),
        ("chc-1", "id chc-1 here", 1),
    ],
)
def test_1_10_search_ranks_by_how_often_a_text_fits(query: str, text: str, rank: int) -> None:
    assert parse_search(query).rank(text) == rank


def test_1_10_search_finds_prefixes_when_asked() -> None:
    assert parse_search("alp", is_prefix=True).rank("alpha alps") == 2
    assert parse_search("alp bet", is_prefix=True).rank("alpha") == 0
    assert parse_search('"big alp"', is_prefix=True).rank("big alpha") == 1


def test_1_10_search_is_by_words_in_any_case() -> None:
    assert words_of("It's a_b 1,234") == ["it", "s", "a", "b", "1", "234"]
