from __future__ import annotations

import asyncio
import json
import logging
import threading
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import pytest

from tests.workers.store_doubles import Moody, file_store
from workers import journal as under_test
from workers.contract.journal import JournalLine, events_prefix
from workers.journal import Journal, forget_old, text_of
from workers.storage import Store

SWEEP = "demo-20260101T000000Z"
NOW = datetime(2026, 1, 1, 12, 0, 0, 5000, tzinfo=UTC)


def journal(store: Store | Moody, source: str = "n1", **more: Any) -> Journal:
    return Journal(cast(Store, store), SWEEP, source, generation=lambda: 2, now=lambda: NOW, **more)


def lines_of(store: Store) -> dict[str, list[JournalLine]]:
    return {
        key.rpartition("/")[2]: [
            JournalLine.from_json(text, key) for text in store.get(key).splitlines()
        ]
        for key in store.keys(events_prefix(SWEEP))
    }


def test_a_line_says_what_it_says_and_no_more(tmp_path: Path) -> None:
    store = file_store(tmp_path)

    async def say() -> None:
        async with journal(store, file=tmp_path / "logs" / SWEEP / "n1") as told:
            told.tell("phase", attempt="ab" * 16, try_="2-7", phase="drive")

    asyncio.run(say())
    expected = {
        "time": "2026-01-01T12:00:00.005Z",
        "source": "n1",
        "event": "phase",
        "sweep": SWEEP,
        "generation": 2,
        "attempt": "ab" * 16,
        "try": "2-7",
        "phase": "drive",
    }
    assert json.loads((tmp_path / "logs" / SWEEP / "n1.jsonl").read_text()) == expected
    (key,) = store.keys(events_prefix(SWEEP))
    assert json.loads(store.get(key)) == expected
    assert key.endswith("/events/n1-20260101T120000005000Z-000000.jsonl")


def test_as_text_it_is_one_line_for_people(tmp_path: Path) -> None:
    async def say() -> None:
        async with journal(file_store(tmp_path), file=tmp_path / "x" / "n1", kind="text") as told:
            told.tell("ended", "invalid:\n of the node", level="warning", attempt="ab" * 16)
            logging.getLogger("workers.anything").warning("by another part")

    asyncio.run(say())
    first, second = (tmp_path / "x" / "n1.log").read_text().splitlines()
    head = "2026-01-01T12:00:00.005Z  WARNING  n1  ended"
    assert first == f"{head}  abababababab: invalid: of the node"
    assert second.endswith("WARNING  n1  log: workers.anything: by another part")


def test_what_the_store_does_not_take_comes_later_in_the_same_segment(tmp_path: Path) -> None:
    store = file_store(tmp_path)
    moody = Moody(store)

    async def say() -> Journal:
        moody.refuses = True
        async with journal(moody, flush_s=0.01) as told:
            told.tell("one")
            async with asyncio.timeout(10.0):
                while told.faults < 2:  # noqa: ASYNC110 - the journal has no event of its own
                    await asyncio.sleep(0.01)
            told.tell("two")
            moody.refuses = False
        return told

    asyncio.run(say())
    said = {key[-12:]: [line.event for line in lines] for key, lines in lines_of(store).items()}
    assert said == {"000000.jsonl": ["one"], "000001.jsonl": ["two"]}


def test_what_is_dropped_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(under_test, "LINES_KEPT", 3)
    store = file_store(tmp_path)

    async def say() -> None:
        async with journal(store) as told:
            for number in range(5):
                told.tell(f"e{number}")

    asyncio.run(say())
    ((first, *others),) = lines_of(store).values()
    assert first.event == "dropped"
    assert first.text.startswith("2 lines")
    assert [line.event for line in others] == ["e2", "e3", "e4"]


def test_two_journals_of_one_process_keep_apart_and_leave_no_handler(tmp_path: Path) -> None:
    store = file_store(tmp_path)
    before = list(logging.getLogger("workers").handlers)

    async def say() -> None:
        async with (
            journal(store, "a", file=tmp_path / "x" / "a") as a,
            journal(store, "b", file=tmp_path / "x" / "b") as b,
        ):
            a.tell("of_a")
            b.tell("of_b")

    asyncio.run(say())
    assert "of_b" not in (tmp_path / "x" / "a.jsonl").read_text()
    assert "of_a" not in (tmp_path / "x" / "b.jsonl").read_text()
    assert logging.getLogger("workers").handlers == before


def test_a_file_that_cannot_be_had_ends_nothing(tmp_path: Path) -> None:
    store = file_store(tmp_path)
    (tmp_path / "no-folder").write_text("")

    async def say() -> None:
        async with journal(store, file=tmp_path / "no-folder" / "x" / "n1") as told:
            told.tell("one")

    asyncio.run(say())
    assert len(lines_of(store)) == 1


def test_a_log_file_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(under_test, "FILE_BYTES", 2000)

    async def say() -> None:
        async with journal(file_store(tmp_path), file=tmp_path / "x" / "n1") as told:
            for number in range(200):
                told.tell("e", str(number))

    asyncio.run(say())
    files = sorted(path.name for path in (tmp_path / "x").iterdir())
    assert files == ["n1.jsonl", "n1.jsonl.1"]
    assert all(path.stat().st_size <= 2000 for path in (tmp_path / "x").iterdir())


def test_logs_of_old_sweeps_go(tmp_path: Path) -> None:
    for name in ("a", "b", "c", "d"):
        (tmp_path / name).mkdir()
    forget_old(tmp_path, keep=tmp_path / "a", count=2)
    left = {path.name for path in tmp_path.iterdir()}
    assert "a" in left
    assert len(left) == 2


def test_text_of_the_driver_names_its_generation() -> None:
    line = JournalLine(
        time="t", source="driver", event="leased", sweep=SWEEP, generation=3, node="n1"
    )
    assert text_of(line) == "t  driver 3  leased  on n1"


def test_a_store_that_hangs_holds_up_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(under_test, "LAST_BOUND_S", 0.05)
    moody = Moody(file_store(tmp_path))
    moody.free.clear()

    async def say() -> None:
        async with asyncio.timeout(10.0):
            async with journal(moody, flush_s=0.01) as told:
                told.tell("one")
                await asyncio.sleep(0.03)

    try:
        asyncio.run(say())
    finally:
        moody.free.set()
    assert moody.most_under_way == 1


def test_a_full_segment_is_written_before_its_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(under_test, "SEGMENT_LINES", 4)
    store = file_store(tmp_path)

    async def say() -> None:
        async with journal(store, flush_s=600.0) as told:
            for _ in range(4):
                told.tell("e")
            async with asyncio.timeout(10.0):
                while not list(store.keys(events_prefix(SWEEP))):  # noqa: ASYNC110 - of a thread
                    await asyncio.sleep(0.005)
            told.tell("last")

    asyncio.run(say())
    assert [len(lines) for lines in lines_of(store).values()] == [4, 1]


def test_a_disk_that_is_too_slow_loses_lines_and_fills_no_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(under_test, "LINES_KEPT", 5)
    go_on, formatted = threading.Event(), under_test.LineFormatter.format

    def slow(self: under_test.LineFormatter, record: logging.LogRecord) -> str:
        assert go_on.wait(20.0)
        return formatted(self, record)

    monkeypatch.setattr(under_test.LineFormatter, "format", slow)
    log = tmp_path / "logs" / SWEEP / "n1.jsonl"

    def caught_up() -> None:
        give_up = time.monotonic() + 20.0
        while "line 4" not in log.read_text() and time.monotonic() < give_up:
            time.sleep(0.01)

    async def say() -> None:
        async with journal(file_store(tmp_path), file=log.with_suffix("")) as told:
            for number in range(50):
                told.tell("note", f"line {number}")
            go_on.set()
            await asyncio.to_thread(caught_up)
            told.tell("note", "the last")

    asyncio.run(say())
    texts = [json.loads(line)["text"] for line in log.read_text().splitlines()]
    kept = len(texts) - 2
    assert 5 <= kept <= 6  # one more may have been on its way
    assert texts[:kept] == [f"line {number}" for number in range(kept)]
    assert f"{50 - kept} lines before this one were dropped" in texts[-2]
    assert texts[-1] == "the last"
