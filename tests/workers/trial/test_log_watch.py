"""Changes of folders on the real kernel."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import workers.trial.log_watch
from workers.trial.log_watch import BLIND_S, CALM_S, Followed, LogWatch

LONG_S = 20.0


def append(path: Path) -> None:
    with path.open("a") as log:
        log.write("a line\n")


def renamed(path: Path) -> None:
    beside = path.parent.parent / "beside"
    beside.write_text("{}")
    beside.rename(path)


@pytest.mark.parametrize("change", [append, Path.touch, Path.mkdir, renamed])
def test_a_change_wakes_everybody_who_waits(tmp_path: Path, change: Callable[[Path], Any]) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()

    async def scenario() -> None:
        logs = LogWatch()
        with logs.follow(folder) as followed:
            waiting = [asyncio.create_task(followed.after(0, LONG_S)) for _ in range(2)]
            await asyncio.sleep(0)
            change(folder / "solo-1.log")
            async with asyncio.timeout(LONG_S):
                assert min(await asyncio.gather(*waiting)) >= 1

    asyncio.run(scenario())


def test_a_change_before_the_wait_is_not_lost_and_is_told_once(tmp_path: Path) -> None:
    async def scenario() -> None:
        logs = LogWatch()
        with logs.follow(tmp_path) as followed:
            append(tmp_path / "log")
            seen = await followed.after(0, LONG_S)
            assert seen == await followed.after(0, LONG_S)
            assert seen == await followed.after(seen, 3 * CALM_S)
            append(tmp_path / "log")
            assert await followed.after(seen, LONG_S) > seen

    asyncio.run(scenario())


def test_folders_are_told_apart(tmp_path: Path) -> None:
    async def scenario() -> None:
        folders = [tmp_path / name for name in ("a", "b")]
        for folder in folders:
            folder.mkdir()
        logs = LogWatch()
        with logs.follow(folders[0]) as one, logs.follow(folders[1]) as other:
            append(folders[1] / "log")
            assert await other.after(0, LONG_S) == 1
            assert one.changes == 0
        with logs.follow(folders[0]) as again:
            append(folders[0] / "log")
            assert await again.after(0, LONG_S) == 1

    asyncio.run(scenario())


def test_a_flood_wakes_no_more_often_than_calm_allows(tmp_path: Path) -> None:
    async def scenario() -> None:
        logs = LogWatch()
        with logs.follow(tmp_path) as followed:
            until = time.monotonic() + 5 * CALM_S
            began, seen, wakes = time.monotonic(), 0, 0
            while time.monotonic() < until:
                for name in ("a", "b", "c"):
                    append(tmp_path / name)
                seen = await followed.after(seen, LONG_S)
                wakes += 1
            assert followed.changes <= (time.monotonic() - began) / CALM_S + 1
            assert wakes == followed.changes

    asyncio.run(scenario())


def test_more_changes_than_the_kernel_keeps_reach_all(tmp_path: Path) -> None:
    kept = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())
    flooded, calm = tmp_path / "flooded", tmp_path / "calm"
    flooded.mkdir()
    calm.mkdir()
    pair = [os.open(flooded / name, os.O_CREAT | os.O_WRONLY) for name in "ab"]

    async def scenario() -> None:
        logs = LogWatch()
        with logs.follow(flooded) as one, logs.follow(calm) as other:
            for turn in range(kept + 10):
                os.pwrite(pair[turn % 2], b"x", 0)  # the same twice in a row counts once
            append(calm / "log")  # too late to be kept
            async with asyncio.timeout(LONG_S):
                await other.after(0, LONG_S)
            assert one.changes > 0

    try:
        asyncio.run(scenario())
    finally:
        for each in pair:
            os.close(each)


async def blind_after(followed: Followed) -> float:
    began = time.monotonic()
    assert await followed.after(followed.changes, LONG_S) == followed.changes > 0
    return time.monotonic() - began


@pytest.mark.parametrize("refused", ["inotify_init1", "inotify_add_watch"])
def test_without_the_kernel_a_folder_counts_as_changed_now_and_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refused: str
) -> None:
    monkeypatch.setattr(workers.trial.log_watch._libc, refused, lambda *_: -1)
    monkeypatch.setattr(workers.trial.log_watch, "BLIND_S", 0.05)
    assert BLIND_S >= 1.0

    async def scenario() -> None:
        logs = LogWatch()
        with logs.follow(tmp_path) as followed:
            assert await blind_after(followed) >= 0.05

    asyncio.run(scenario())


def test_nothing_is_open_where_nobody_follows(tmp_path: Path) -> None:
    def descriptors() -> int:
        return len(os.listdir("/proc/self/fd"))

    async def scenario() -> None:
        before, logs = descriptors(), LogWatch()
        for _ in range(2):
            with logs.follow(tmp_path) as followed:
                assert descriptors() == before + 1
                append(tmp_path / "log")
                await followed.after(0, LONG_S)
            # While it waits for calm.
            assert descriptors() == before
        await asyncio.sleep(2 * CALM_S)

    asyncio.run(scenario())
