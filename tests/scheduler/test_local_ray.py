"""The ground under a local Ray, without Ray."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from scheduler.local_ray import LOGS_KEPT, LONGEST_FOLDER, RayFolder, remove_stale, stale


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[RayFolder]:
    made = RayFolder(tmp_path / "ray")
    yield made
    made.remove()


def sleeper(folder: RayFolder, name: str, **environment: str) -> subprocess.Popen[bytes]:
    """A process that would sleep for a minute, with a word in its command line."""
    code = "import sys, time; print(flush=True); time.sleep(60)"
    process = subprocess.Popen(
        [sys.executable, "-c", code, name],
        env={**os.environ, **folder.environment, **environment},
        stdout=subprocess.PIPE,
    )
    assert process.stdout is not None
    process.stdout.readline()
    process.stdout.close()
    return process


def test_its_path_leaves_room_for_sockets(folder: RayFolder) -> None:
    assert len(str(folder.path)) <= LONGEST_FOLDER
    assert folder.path.stat().st_mode & 0o777 == 0o700


def test_a_long_directory_for_temporary_files_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deep = tmp_path / ("x" * 60)
    deep.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(deep))
    made = RayFolder(tmp_path / "ray")
    try:
        assert len(str(made.path)) <= LONGEST_FOLDER
    finally:
        made.remove()


def test_the_token_is_on_in_a_file_of_ours_alone(folder: RayFolder) -> None:
    environment = folder.environment
    assert environment["RAY_AUTH_MODE"] == "token"
    assert environment["RAY_USAGE_STATS_ENABLED"] == "0"
    token = Path(environment["RAY_AUTH_TOKEN_PATH"])
    assert token.stat().st_mode & 0o777 == 0o600
    assert len(token.read_text()) == 64
    assert token.read_text() not in str(environment)


def test_what_ray_left_running_is_ended_and_nothing_else(
    folder: RayFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("scheduler.local_ray.PATIENCE_S", 0.2)
    left = sleeper(folder, "ray::Left")
    other = sleeper(folder, "ray::Other", RAY_AUTH_TOKEN_PATH="/elsewhere/token")
    mine = sleeper(folder, "an editor")
    try:
        assert folder.processes() == [left.pid]
        assert folder.remove() == [left.pid]
        assert left.wait(10.0) == -9
        assert other.poll() is None
        assert mine.poll() is None
    finally:
        for process in (left, other, mine):
            process.kill()
            process.wait(10.0)


def test_a_process_whose_title_lies_over_the_variable_is_told_by_its_logs(
    folder: RayFolder,
) -> None:
    log = folder.path / "agent.log"
    code = f"import time; log = open({str(log)!r}, 'w'); print(flush=True); time.sleep(60)"
    processes = [
        subprocess.Popen([title, "-c", code], executable=sys.executable, stdout=subprocess.PIPE)
        for title in ("ray::Agent", "less /tmp/ray")
    ]
    try:
        for process in processes:
            assert process.stdout is not None
            process.stdout.readline()
            process.stdout.close()
        assert folder.processes() == [processes[0].pid]
        assert folder.end_now() == [processes[0].pid]
        assert processes[1].poll() is None
    finally:
        for process in processes:
            process.kill()
            process.wait(10.0)


def test_the_servers_of_a_ray_are_told_by_their_programs(folder: RayFolder) -> None:
    code = "import time; print(flush=True); time.sleep(60)"
    raylet = subprocess.Popen(
        ["/opt/ray/raylet", "-c", code],
        executable=sys.executable,
        env={**os.environ, **folder.environment},
        stdout=subprocess.PIPE,
    )
    try:
        assert raylet.stdout is not None
        raylet.stdout.readline()
        raylet.stdout.close()
        assert folder.servers() == {"Ray's node manager (raylet)": raylet.pid}
    finally:
        raylet.kill()
        raylet.wait(10.0)


def test_what_ends_by_itself_is_not_killed(folder: RayFolder) -> None:
    assert folder.remove() == []


def test_the_end_of_what_workers_said_is_kept_and_ray_s_headings_are_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("scheduler.local_ray.LOG_BYTES", 50)
    made = RayFolder(tmp_path / "ray")
    logs = made.path / "session_2026-01-01" / "logs"
    logs.mkdir(parents=True)
    (logs / "worker-1.out").write_text(":job_id:01000000\n:actor_name:NodeActor\n")
    (logs / "worker-2.err").write_text(":job_id:01000000\n" + "x" * 100 + "the last words\n")
    (logs / "worker-3.err").symlink_to("/etc/hostname")
    made.remove()
    (kept,) = (tmp_path / "ray").glob("*/*")
    assert kept.name == "worker-2.err"
    assert kept.read_text().endswith("xthe last words\n")
    assert kept.stat().st_size == 50
    assert not made.path.exists()


def test_nothing_is_kept_of_a_silent_run(tmp_path: Path) -> None:
    RayFolder(tmp_path / "ray").remove()
    assert list((tmp_path / "ray").iterdir()) == []


def test_logs_of_the_last_runs_only_are_kept(tmp_path: Path) -> None:
    for number in range(LOGS_KEPT + 3):
        (tmp_path / "ray" / f"20200101T00000{number}Z-1").mkdir(parents=True)
    made = RayFolder(tmp_path / "ray")
    made.log.write_text("a word")
    made.remove()
    names = sorted(path.name for path in (tmp_path / "ray").iterdir())
    assert len(names) == LOGS_KEPT
    assert names[-1].endswith(f"-{os.getpid()}")


def test_folders_of_drivers_that_are_gone_are_removed_and_others_stay(tmp_path: Path) -> None:
    root = Path(tempfile.gettempdir())
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait(30.0)
    stale = root / f"apiary-ray-{gone.pid}-test"
    living = root / f"apiary-ray-{os.getppid()}-test"
    for path in (stale, living):
        path.mkdir()
    made = RayFolder(tmp_path / "ray")
    try:
        assert not stale.exists()
        assert living.exists()
        assert made.path.exists()
    finally:
        living.rmdir()
        made.remove()


def test_what_still_runs_of_a_driver_that_is_gone_is_ended(folder: RayFolder) -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait(30.0)
    abandoned = Path(tempfile.gettempdir()) / f"apiary-ray-{gone.pid}-test"
    abandoned.mkdir()
    left = sleeper(folder, "ray::Left", RAY_AUTH_TOKEN_PATH=str(abandoned / "token"))
    mine = sleeper(folder, "ray::Mine")
    try:
        assert abandoned in stale()
        assert abandoned in remove_stale()
        assert not abandoned.exists()
        assert left.wait(10.0) == -9
        assert mine.poll() is None
    finally:
        for process in (left, mine):
            process.kill()
            process.wait(10.0)
