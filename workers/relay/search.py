"""Full text search as ``to_tsvector('simple', …)`` with web search syntax would have it.

All words must occur; ``"a phrase"`` in that order; ``-word`` must not; ``or`` between two terms.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_WORD = re.compile(r"[^\W_]+")
_TERM = re.compile(r'(-?)"([^"]*)"|(\S+)')


@dataclass(frozen=True)
class Term:
    """Words that must stand together, in order."""

    words: tuple[str, ...]
    is_prefix: bool = False
    """The last word may go on."""

    def count(self, text: list[str]) -> int:
        """How often it occurs among a text's words."""
        size = len(self.words)
        return sum(self._is_at(text[start : start + size]) for start in range(len(text) - size + 1))

    def _is_at(self, part: list[str]) -> bool:
        if not self.is_prefix:
            return tuple(part) == self.words
        return tuple(part[:-1]) == self.words[:-1] and part[-1].startswith(self.words[-1])


@dataclass(frozen=True)
class Search:
    """A parsed query."""

    required: tuple[tuple[Term, ...], ...]
    """Of each group of alternatives one must occur."""
    excluded: tuple[Term, ...]

    def rank(self, text: str) -> int:
        """How often a text fits; 0: it does not. A query without words fits nothing."""
        words = words_of(text)
        if not self.required or any(term.count(words) for term in self.excluded):
            return 0
        counts = [sum(term.count(words) for term in group) for group in self.required]
        return 0 if 0 in counts else sum(counts)


def words_of(text: str) -> list[str]:
    """The words of a text, lower-cased."""
    return [word.lower() for word in _WORD.findall(text)]


def parse_search(query: str, *, is_prefix: bool = False) -> Search:
    """Reads a query.

    Args:
        query: what the user typed.
        is_prefix: every term also finds longer words (``search_mode`` ``prefix``).
    """
    required: list[tuple[Term, ...]] = []
    excluded: list[Term] = []
    joins_last = False
    for minus, phrase, bare in _TERM.findall(query):
        if bare.lower() == "or" and required:
            joins_last = True
            continue
        is_excluded = bool(minus) or bare.startswith("-")
        words = tuple(words_of(phrase or bare))
        if not words:
            continue
        term = Term(words, is_prefix)
        if is_excluded:
            excluded.append(term)
        elif joins_last:
            required[-1] = (*required[-1], term)
        else:
            required.append((term,))
        joins_last = False
    return Search(tuple(required), tuple(excluded))
