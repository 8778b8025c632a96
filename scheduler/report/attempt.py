"""One attempt, as the store has it: every try, and the evidence of the one that counts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from workers.contract.evidence import Evidence
from workers.contract.result import TryRecord, is_try, result_key, try_prefix
from workers.contract.spec import Epoch
from workers.storage.interface import MissingKeyError, Store

EVIDENCE = "evidence.json"


@dataclass(frozen=True)
class AttemptFiles:
    """What is stored of an attempt."""

    sweep: str
    attempt: str
    result: TryRecord | None
    """The committed try."""
    tries: Mapping[str, TryRecord | None]
    """Every try in order; null for one that left files but no record."""
    files: Mapping[str, tuple[str, ...]]
    """Try to its files, relative to ``try_prefix``."""

    def chosen(self, wanted: str | None) -> str | None:
        """The try to look at: the one wanted, else the committed, else the last.

        Raises:
            KeyError: there is no such try.
        """
        if wanted is not None:
            if wanted not in self.tries:
                raise KeyError(wanted)
            return wanted
        if self.result is not None:
            return self.result.try_
        return list(self.tries)[-1] if self.tries else None


def read_attempt(store: Store, sweep: str, attempt: str) -> AttemptFiles:
    """Reads the records of an attempt and lists its files; blocks.

    Raises:
        FormatError: a record is not of this version's format.
        StoreError: the store refused.
    """
    result = _record(store, result_key(sweep, attempt))
    files: dict[str, list[str]] = {}
    prefix = try_prefix(sweep, attempt, "")
    for key in store.keys(prefix):
        try_, _, name = key.removeprefix(prefix).partition("/")
        if name and is_try(try_):  # what else lies there is none of ours
            files.setdefault(try_, []).append(name)
    tries = {
        try_: _record(store, f"{try_prefix(sweep, attempt, try_)}/try.json")
        for try_ in sorted(files, key=Epoch.parse)
    }
    if result is not None and tries.get(result.try_) is None:
        tries[result.try_] = result  # the commit is the record of its try as well
    return AttemptFiles(
        sweep=sweep,
        attempt=attempt,
        result=result,
        tries=tries,
        files={try_: tuple(sorted(names)) for try_, names in files.items()},
    )


def read_evidence(store: Store, found: AttemptFiles, try_: str) -> Evidence | None:
    """The evidence of a try; null where none could be taken.

    Raises:
        FormatError: it is not of this version's format.
        StoreError: the store refused.
    """
    key = f"{try_prefix(found.sweep, found.attempt, try_)}/{EVIDENCE}"
    try:
        return Evidence.from_json(store.get(key), key)
    except MissingKeyError:
        return None


def _record(store: Store, key: str) -> TryRecord | None:
    try:
        return TryRecord.from_json(store.get(key), key)
    except MissingKeyError:
        return None
