from __future__ import annotations

import difflib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workers.agent.commands import diff

TEXTS = st.lists(st.sampled_from(["a\n", "b\n", "\n", "c c\n", "-x\n"]), max_size=12).flatmap(
    lambda lines: st.sampled_from(["".join(lines), "".join(lines) + "end"])
)


def unified(old: str, new: str, context: int) -> str:
    lines = difflib.unified_diff(
        old.splitlines(keepends=True), new.splitlines(keepends=True), "a", "b", n=context
    )
    return "".join(
        line if line.endswith("\n") else line + "\n\\ No newline at end of file\n" for line in lines
    )


@given(TEXTS, TEXTS, st.integers(0, 3))
def test_what_difflib_writes_is_applied(old: str, new: str, context: int) -> None:
    patch = unified(old, new, context)
    if patch:
        assert diff.apply(old, patch) == new


def test_a_line_that_differs_is_a_mismatch() -> None:
    with pytest.raises(diff.PatchMismatch, match="line 2"):
        diff.apply("a\nX\n", "@@ -2 +2 @@\n-b\n+c\n")


def test_context_must_stand_where_it_says() -> None:
    with pytest.raises(diff.PatchMismatch):
        diff.apply("z\na\nb\n", "@@ -1,2 +1,2 @@\n a\n-b\n+c\n")


@pytest.mark.parametrize(
    "patch",
    ["", "nonsense\n", "@@ -1 +1 @@\n-a\n", "@@ -1 +1 @@\n?a\n+b\n", "--- a\n+++ b\n"],
)
def test_what_is_no_diff_is_refused(patch: str) -> None:
    with pytest.raises(diff.PatchFormatError):
        diff.apply("a\n", patch)


def test_hunks_in_the_wrong_order_are_refused() -> None:
    patch = "@@ -2 +2 @@\n-b\n+c\n@@ -1 +1 @@\n-a\n+c\n"
    with pytest.raises(diff.PatchFormatError, match="order"):
        diff.apply("a\nb\n", patch)
