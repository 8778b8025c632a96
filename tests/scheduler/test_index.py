"""The derived index of commits."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from scheduler.index import SEGMENT, IndexWriter, index_prefix, read_index
from tests.scheduler.builders import SWEEP
from workers.contract.outcome import Cause, Verdict
from workers.storage import open_store


def one_by_one(read: Callable[[str], bytes | None], keys: Sequence[str]) -> Iterable[bytes | None]:
    return map(read, keys)


def test_what_was_written_is_read_over_all_segments_and_drivers(tmp_path: Path) -> None:
    store = open_store(f"file://{tmp_path}")
    expected = {}
    for generation in (1, 2):
        writer = IndexWriter(SWEEP, generation)
        for number in range(2):
            verdict = Verdict.PASS if number else Verdict.FAIL
            cause = Cause.NONE if number else Cause.NO_REPLY
            writer.add(f"{generation}{number}", verdict, cause)
            expected[f"{generation}{number}"] = (verdict, cause)
            segment = writer.take()
            assert segment is not None
            store.put(*segment)
    assert sorted(store.keys(index_prefix(SWEEP))) == [
        f"sweeps/{SWEEP}/index/{name}.jsonl" for name in ("1-1", "1-2", "2-1", "2-2")
    ]
    assert read_index(store, SWEEP, one_by_one) == expected


def test_a_segment_is_due_when_it_is_whole() -> None:
    writer = IndexWriter(SWEEP, 1)
    assert writer.take() is None
    for number in range(SEGMENT):
        assert not writer.is_due
        writer.add(f"{number}", Verdict.PASS, Cause.NONE)
    assert writer.is_due
    segment = writer.take()
    assert segment is not None
    assert segment[1].count(b"\n") == SEGMENT
    assert not writer.is_due
    assert writer.take() is None


def test_spoilt_lines_and_those_without_a_cause_are_passed_over(tmp_path: Path) -> None:
    store = open_store(f"file://{tmp_path}")
    good = '{"attempt": "a", "verdict": "fail", "cause": "wrong"}'
    old = '{"attempt": "o", "verdict": "pass"}'
    content = f'{good}\n{old}\n\xff\n{{"attempt": "b"}}\n{{"attempt": "c", "verdict": "maybe"}}\n'
    store.put(f"{index_prefix(SWEEP)}1-1.jsonl", content.encode("latin-1"))
    store.put(f"{index_prefix(SWEEP)}1-2.jsonl", b"")
    assert read_index(store, SWEEP, one_by_one) == {"a": (Verdict.FAIL, Cause.WRONG)}
