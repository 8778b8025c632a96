from __future__ import annotations

import os
from pathlib import Path

import pytest

from workers.container.disk import MIB
from workers.trial.disk_watch import LOOK_S, SOON_S, DiskWatch, trim
from workers.trial.files import LogTail, read_head_and_tail

BLOCK = 4096


def on_disk(path: Path) -> int:
    return path.stat().st_blocks * 512


def test_a_long_log_loses_its_middle_and_keeps_its_length(tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    text = b"".join(b"%07d\n" % number for number in range(500_000))
    log.write_bytes(text)
    trim(log, 16 * BLOCK)
    assert log.stat().st_size == len(text)
    assert on_disk(log) <= 40 * BLOCK
    kept = read_head_and_tail(log, 16 * BLOCK)
    assert kept.data.startswith(text[: 8 * BLOCK])
    assert kept.data.endswith(text[-8 * BLOCK :])
    assert kept.dropped == len(text) - 16 * BLOCK


def test_what_is_not_read_yet_stays_for_whoever_follows(tmp_path: Path) -> None:
    log = tmp_path / "solo-1.stdout.log"
    lines = [f"line {number}" for number in range(300_000)]
    log.write_text("\n".join(lines) + "\n")
    tail = LogTail(log)
    watch = DiskWatch(tmp_path, None, 1 << 40, BLOCK, tail)
    assert watch.look() == ""
    assert on_disk(log) >= log.stat().st_size
    read = tail.lines()
    while tail.behind:
        assert watch.look() == ""
        read += tail.lines()
    assert read == lines
    assert watch.look() == ""
    assert on_disk(log) <= 4 * BLOCK


@pytest.mark.parametrize("kind", ["link", "pipe", "folder", "short"])
def test_what_is_no_long_log_is_let_be(tmp_path: Path, kind: str) -> None:
    victim = tmp_path / "victim"
    victim.write_bytes(b"x" * 100 * BLOCK)
    log = tmp_path / "a.log"
    match kind:
        case "link":
            log.symlink_to(victim)
        case "pipe":
            os.mkfifo(log)
        case "folder":
            log.mkdir()
        case _:
            log.write_bytes(b"y" * 2 * BLOCK)
    trim(log, BLOCK)
    assert on_disk(victim) >= 100 * BLOCK
    if kind == "short":
        assert log.read_bytes() == b"y" * 2 * BLOCK


def test_the_logs_may_not_take_more_than_the_task_grants(tmp_path: Path) -> None:
    watch = DiskWatch(tmp_path, None, MIB, BLOCK)
    (tmp_path / "a.log").write_bytes(b"x" * 3 * MIB)
    assert watch.look() == ""
    (tmp_path / "junk").write_bytes(b"x" * 2 * MIB)
    assert watch.look() == "/logs/agents holds 2 MB or more, storage_mb is 1"
    assert watch.layer_bytes is None


def test_who_writes_fast_is_looked_at_soon(tmp_path: Path) -> None:
    watch = DiskWatch(tmp_path, None, 1 << 40, BLOCK)
    watch.look()
    assert watch.pause_s == LOOK_S
    (tmp_path / "junk").write_bytes(b"x" * 6 * MIB)
    watch.look()
    assert watch.pause_s == SOON_S
    watch.look()
    assert watch.pause_s == LOOK_S


def test_a_layer_beyond_its_bound_is_noted_and_far_beyond_it_ends(tmp_path: Path) -> None:
    logs, layer = tmp_path / "logs", tmp_path / "layer"
    logs.mkdir()
    (layer / "app").mkdir(parents=True)
    (layer / "app" / "big").write_bytes(b"x" * (3 * MIB // 2))

    def watch() -> DiskWatch:
        return DiskWatch(logs, layer, MIB, BLOCK)

    first = watch()
    assert first.look() == ""
    assert MIB < (first.layer_bytes or 0) < 2 * MIB
    (layer / "app" / "bigger").write_bytes(b"x" * MIB)
    assert first.look() == "", "the layer is not looked at again at once"
    second = watch()
    assert second.look() == "the container's own files take 2 MB or more, storage_mb is 1"
