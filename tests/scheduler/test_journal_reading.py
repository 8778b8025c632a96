from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from scheduler.journal_reading import JournalReader, Wanted, driver_end, following
from tests.scheduler.builders import SWEEP
from tests.workers.store_doubles import Moody, file_store
from workers.contract.journal import JournalLine, events_prefix, segment_key
from workers.storage import Store

START = "20260101T000000000000Z"
A, B = "a" * 32, "b" * 32


def put(store: Store, source: str, number: int, *seconds: float, **more: Any) -> None:
    lines = [
        JournalLine.model_validate(
            {
                "time": f"2026-01-01T00:00:{second:06.3f}Z",
                "source": source,
                "event": "e",
                "sweep": SWEEP,
                **more,
            }
        ).to_line()
        for second in seconds
    ]
    data = "".join(f"{line}\n" for line in lines).encode()
    store.put(segment_key(SWEEP, source, START, number), data)


def told(lines: Iterator[JournalLine]) -> list[tuple[str, float]]:
    return [(line.source, float(line.time[17:23])) for line in lines]


def test_writers_are_merged_by_time(tmp_path: Path) -> None:
    store = file_store(tmp_path)
    put(store, "n-1", 0, 1, 4)
    put(store, "n-1", 1, 6)
    put(store, "driver", 0, 0.5, 2, 5)
    put(store, "n-2", 0, 3)
    order = told(JournalReader(store, SWEEP).lines())
    assert [second for _, second in order] == [0.5, 1, 2, 3, 4, 5, 6]
    assert order[3] == ("n-2", 3)


def test_one_attempt_and_one_node(tmp_path: Path) -> None:
    store = file_store(tmp_path)
    put(store, "n-1", 0, 1, attempt=A)
    put(store, "n-2", 0, 2, attempt=B)
    put(store, "driver", 0, 3, attempt=A, node="n-1")
    put(store, "driver", 1, 4, attempt=B, node="n-2")
    of_a = JournalReader(store, SWEEP, Wanted(attempt=A[:6]))
    assert told(of_a.lines()) == [("n-1", 1), ("driver", 3)]
    of_node = JournalReader(store, SWEEP, Wanted(node="n-2"))
    assert told(of_node.lines()) == [("n-2", 2), ("driver", 4)]


def test_what_was_given_is_not_given_again(tmp_path: Path) -> None:
    store = file_store(tmp_path)
    reader = JournalReader(store, SWEEP)
    put(store, "n-1", 0, 1)
    assert told(reader.lines()) == [("n-1", 1)]
    assert told(reader.lines()) == []
    put(store, "n-1", 1, 2)
    put(store, "n-2", 0, 1.5)
    assert told(reader.lines()) == [("n-2", 1.5), ("n-1", 2)]


def test_following_ends_with_the_sweep_and_misses_nothing(tmp_path: Path) -> None:
    store = file_store(tmp_path)
    put(store, "n-1", 0, 1)
    looks = iter((False, False, True))

    def pause() -> None:
        number = len(list(store.keys(events_prefix(SWEEP))))
        put(store, "n-1", number, 1 + number)

    reader = JournalReader(store, SWEEP)
    found = told(following(reader, lambda: next(looks), pause))
    assert [second for _, second in found] == [1, 2, 3]


def test_what_is_no_line_is_counted_and_passed_over(tmp_path: Path) -> None:
    store = file_store(tmp_path)
    put(store, "n-1", 0, 1)
    key = segment_key(SWEEP, "n-1", START, 1)
    store.put(key, b'not json\n{"time": "t", "source": "n", "event": "e", "future": 1}\n')
    put(store, "n-1", 2, 2)
    store.put(f"{events_prefix(SWEEP)}something-else.txt", b"x")
    reader = JournalReader(store, SWEEP)
    assert [second for _, second in told(reader.lines())] == [1, 2]
    assert reader.unread == 2


def test_segments_are_read_one_by_one(tmp_path: Path) -> None:
    """A large journal is not held: after ten lines, few of its hundred segments were read."""
    store = file_store(tmp_path)
    for number in range(100):
        put(store, "n-1", number, number / 10)
    moody = Moody(store)
    read: list[str] = []
    moody.get = lambda key: (read.append(key), store.get(key))[1]  # type: ignore[method-assign]
    lines = JournalReader(moody, SWEEP).lines()  # type: ignore[arg-type]
    assert len(list(islice(lines, 10))) == 10
    assert len(read) <= 12


def test_how_a_driver_ended_is_its_own_last_word(tmp_path: Path) -> None:
    store = file_store(tmp_path)
    assert driver_end(store, SWEEP, 1) == ""
    put(store, "driver", 0, 1, event="driver_started", generation=1)
    put(store, "driver", 2, 9, event="driver_failed", generation=1, text="ClusterError: no Ray")
    put(store, "driver-x", 7, 9, event="driver_ended", generation=1, text="a node's name")
    assert driver_end(store, SWEEP, 1) == "ClusterError: no Ray"
    assert driver_end(store, SWEEP, 2) == ""
    store.put(segment_key(SWEEP, "driver", START, 3), b'{"half')
    assert driver_end(store, SWEEP, 1) == ""
