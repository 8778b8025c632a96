"""The index of a sweep's commits: derived, so that a rebuild need not read every result.

A listing says which attempts are committed and carries no verdicts. Segments of about a
thousand commits carry them; a segment that is missing or spoilt only costs time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from workers.contract.base import FormatError, Strict
from workers.contract.outcome import Cause, Verdict
from workers.storage.interface import MissingKeyError, Store

SEGMENT = 1000
"""Commits in one segment."""

ReadMany = Callable[[Callable[[str], bytes | None], Sequence[str]], Iterable[bytes | None]]
"""Reads many keys, side by side or one after the other."""


class IndexLine(Strict):
    """One line of ``index/<g>-<n>.jsonl``."""

    attempt: str
    verdict: Verdict
    cause: Cause | None = None
    """Null in lines of before there were causes here: the result itself is read."""


class IndexWriter:
    """Collects commits of one driver generation into segments."""

    def __init__(self, sweep: str, generation: int) -> None:
        self._prefix = f"{index_prefix(sweep)}{generation}-"
        self._number = 0
        self._waiting: list[IndexLine] = []

    @property
    def is_due(self) -> bool:
        """Whether a whole segment has come together."""
        return len(self._waiting) >= SEGMENT

    def add(self, attempt: str, verdict: Verdict, cause: Cause) -> None:
        """A commit was counted."""
        self._waiting.append(IndexLine(attempt=attempt, verdict=verdict, cause=cause))

    def take(self) -> tuple[str, bytes] | None:
        """The next segment's key and content; None if there is nothing to write."""
        if not self._waiting:
            return None
        self._number += 1
        lines, self._waiting = self._waiting, []
        content = "".join(f"{line.to_json()}\n" for line in lines).encode()
        return f"{self._prefix}{self._number}.jsonl", content


def index_prefix(sweep: str) -> str:
    """The key prefix of the segments."""
    return f"sweeps/{sweep}/index/"


def read_index(store: Store, sweep: str, read_many: ReadMany) -> dict[str, tuple[Verdict, Cause]]:
    """Verdict and cause of the commits that the segments name.

    What it says counts only for attempts that have a ``result.json``.
    """

    def read(key: str) -> bytes | None:
        try:
            return store.get(key)
        except MissingKeyError:
            return None

    known: dict[str, tuple[Verdict, Cause]] = {}
    for content in read_many(read, list(store.keys(index_prefix(sweep)))):
        for line in (content or b"").splitlines():
            try:
                found = IndexLine.from_json(line, "index")
            except FormatError:
                continue
            if found.cause is not None:
                known[found.attempt] = found.verdict, found.cause
    return known
