"""Figures in a message's text: numbers, and a label before its figure.

Every function takes time in proportion to its text, whatever the text is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

# Only ASCII letters and digits before a number hide it, while any decimal digit belongs to one:
# both as in Buzz's own verifiers.
_NUMBER = re.compile(r"(?<![A-Za-z0-9_])-?\d[\d,]*(?:\.\d+)?")
_AMOUNT = re.compile(r"(?<![A-Za-z0-9_])-?\$?\d[\d,]*(?:\.\d+)?")
_DIGITS = re.compile(r"(\d+)")


def numbers(text: str) -> Iterator[float]:
    """The numbers of a text, commas taken out; a dollar sign does not belong to one."""
    for match in _NUMBER.finditer(text):
        yield float(match.group().replace(",", ""))


def amounts(text: str) -> Iterator[float]:
    """The numbers of a text, commas and a dollar sign after the minus taken out."""
    for match in _AMOUNT.finditer(text):
        yield float(match.group().replace(",", "").replace("$", ""))


def has_amount(text: str, figure: float) -> bool:
    """Whether some number of a text is within 1 of a figure, 1 included."""
    return any(abs(amount - figure) <= 1.0 for amount in amounts(text))


def stretches(text: str) -> Iterator[tuple[str, str]]:
    """A text's runs of digits, each with the run of other characters before it."""
    # Splitting looks at each character once; a pattern for both runs would look from every start.
    parts = _DIGITS.split(text)
    return zip(parts[0::2], parts[1::2])


def has_word(text: str, word: str) -> bool:
    """Whether a word stands in a text, in any case and also inside a longer word."""
    return re.search(re.escape(word), text, re.IGNORECASE) is not None


def has_labelled(text: str, label: str, figure: str, *, whole: bool) -> bool:
    """Whether a label, one or more non-digits and a figure follow one another.

    Args:
        text: where to look.
        label: without digits; any case.
        figure: digits, compared as written.
        whole: whether the figure must not go on with another digit.
    """
    return any(
        (digits == figure if whole else digits.startswith(figure)) and has_word(between[:-1], label)
        for between, digits in stretches(text)
    )


def has_concluded(text: str, words: tuple[str, ...], figure: str) -> bool:
    """Whether one of some words, any non-digits and exactly a figure follow one another."""
    return any(
        digits == figure and any(has_word(between, word) for word in words)
        for between, digits in stretches(text)
    )


def has_in_sentence(text: str, name: str, word: str) -> bool:
    """Whether a name and then a word stand in one piece without full stop and newline; any case."""
    wanted = re.compile(re.escape(name), re.IGNORECASE)
    for piece in re.split(r"[.\n]", text):
        found = wanted.search(piece)
        if found and has_word(piece[found.end() :], word):
            return True
    return False
