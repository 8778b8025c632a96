"""Tags: values, mentions, threads (NIP-10 as Buzz resolves it)."""

from __future__ import annotations

import pytest

from workers.nostr.tags import Thread, first, mentioned, reply_tags, thread_of, values

A, B, C = "a" * 64, "b" * 64, "c" * 64


def test_values_and_first() -> None:
    tags = [["p", A], ["p"], ["e", B], ["p", B, "x"]]
    assert list(values(tags, "p")) == [A, B]
    assert first(tags, "e") == B
    assert first(tags, "h") is None


def test_1_5_mentions_are_lower_cased_and_well_formed() -> None:
    assert mentioned([["p", A.upper()], ["p", "short"], ["p", A + "0"]]) == {A}


@pytest.mark.parametrize(
    ("tags", "thread"),
    [
        ([], None),
        ([["e", A]], None),
        ([["e", A, "", "mention"]], None),
        ([["e", A, "", "root"]], None),
        ([["e", A, "", "reply"]], Thread(A, A)),
        ([["e", A, "", "root"], ["e", B, "", "reply"]], Thread(A, B)),
        ([["e", B, "", "reply"], ["e", A, "", "root"]], Thread(A, B)),
        ([["e", A, "", "reply"], ["e", B, "", "reply"]], Thread(B, B)),
        ([["e", A, "", "root"], ["e", B, "", "root"], ["e", C, "", "reply"]], Thread(B, C)),
        ([["e", "short", "", "reply"]], None),
        ([["e", A.upper(), "", "reply"]], None),
        ([["E", A, "", "reply"]], None),
    ],
)
def test_2_4_the_place_in_a_thread(tags: list[list[str]], thread: Thread | None) -> None:
    assert thread_of(tags) == thread


def test_2_4_a_reply_to_a_top_level_message_has_one_tag() -> None:
    assert reply_tags(A, [["h", "x"]]) == (("e", A, "", "reply"),)


def test_2_4_a_reply_inside_a_thread_names_root_and_parent() -> None:
    parent = reply_tags(A, [])
    assert reply_tags(B, parent) == (("e", A, "", "root"), ("e", B, "", "reply"))
    assert reply_tags(C, reply_tags(B, parent)) == (
        ("e", A, "", "root"),
        ("e", C, "", "reply"),
    )
