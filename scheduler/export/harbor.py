"""A sweep as a job folder that Harbor's viewer shows and Harbor's models read."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from scheduler.export.harbor_format import Job, Trial, job_of
from scheduler.lock import read_locks
from scheduler.report.collect import collect
from workers.contract import agent_logs
from workers.contract.result import TryRecord, try_prefix
from workers.storage.interface import MissingKeyError, Store

READERS = 16
BUZZ = "agent/buzz"
"""Where agent logs and evidence, or the reason why there is none, are looked for."""
PLACES: tuple[tuple[str, str], ...] = (
    ("logs/agents/oracle.log", "agent/oracle.txt"),
    ("logs/verifier/output.log", "verifier/test-stdout.txt"),
    ("reward.json", "verifier/reward.json"),
    ("reward.txt", "verifier/reward.txt"),
    ("details.json", "verifier/details.json"),
)
"""Files of a try that Harbor has a place for."""
FOLDERS: tuple[tuple[str, str], ...] = (
    ("logs/agents/", f"{BUZZ}/"),
    ("buzz/", f"{BUZZ}/"),
    ("", f"{BUZZ}/"),
)
"""Where all others go, by how their names begin."""


class ExportError(Exception):
    """A sweep cannot be exported to where it should be; the message says why."""


@dataclass(frozen=True)
class Exported:
    """What was written."""

    trials: int
    files: int
    missing: int
    """Files that records name and the store has no more."""


def export_harbor(store: Store, sweep: str, target: Path) -> Exported:
    """Writes a sweep as it stands as a Harbor job; blocks.

    Args:
        store: that has the sweep.
        sweep: its id.
        target: the job's folder, which is made or must be empty.

    Raises:
        ExportError: the folder cannot be used.
        LockError: there is no such sweep.
        FormatError: a record is not of this version's format.
        StoreError: the store refused.
    """
    _make(target)
    locks = read_locks(store, sweep)
    job = job_of(locks[-1], collect(store, sweep), target.resolve().name)
    try:
        with ThreadPoolExecutor(READERS, thread_name_prefix="export") as pool:
            counts = list(pool.map(lambda each: _write_trial(store, each, target), job.trials))
        _write_job(job, target)
    except OSError as error:
        raise ExportError(f"{target}: {error.strerror}") from error
    return Exported(
        trials=len(job.trials),
        files=sum(written for written, _ in counts),
        missing=sum(missing for _, missing in counts),
    )


def _make(target: Path) -> None:
    try:
        target.mkdir(parents=True, exist_ok=True)
        if any(target.iterdir()):
            raise ExportError(f"{target}: a job is written into a folder of its own, and this has "
                              "files")  # fmt: skip
    except OSError as error:
        raise ExportError(f"{target}: {error.strerror}") from error


def _write_job(job: Job, target: Path) -> None:
    """Last of all, so that a folder with them is whole."""
    _write_json(target / "config.json", job.config)
    _write_json(target / "result.json", job.result)
    lines = [f"{trial.name}: {_line(trial.record)}" for trial in job.trials]
    (target / "job.log").write_text("\n".join([*lines, ""]), encoding="utf-8")


def _write_trial(store: Store, trial: Trial, target: Path) -> tuple[int, int]:
    """Writes one trial; gives the files written and those that the store has no more."""
    folder, record = target / trial.name, trial.record
    folder.mkdir()
    written, missing = 0, 0
    for name in record.files:
        place_of(name)  # which refuses a name before it is read
        try:
            data = store.get(f"{try_prefix(record.sweep, record.attempt, record.try_)}/{name}")
        except MissingKeyError:
            missing += 1
            continue
        for each, content in _unpacked(name, data).items():
            path = folder / place_of(each)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
            written += 1
    for name in ("agent", "verifier", "artifacts"):
        (folder / name).mkdir(exist_ok=True)
    (folder / BUZZ).mkdir(exist_ok=True)
    (folder / BUZZ / "try.json").write_text(record.to_json() + "\n", encoding="utf-8")
    (folder / "trial.log").write_text(_line(record) + "\n", encoding="utf-8")
    raised = trial.result["exception_info"]
    if raised is not None:
        text = "\n".join([raised["exception_message"], raised["exception_traceback"]]).strip()
        (folder / "exception.txt").write_text(f"{text}\n", encoding="utf-8")
    _write_json(folder / "config.json", trial.config)
    _write_json(folder / "result.json", trial.result)
    return written, missing


def _unpacked(name: str, data: bytes) -> Mapping[str, bytes]:
    """A file, or those of the archive of agent logs, as if each had been kept for itself."""
    if name != agent_logs.ARCHIVE:
        return {name: data}
    return {agent_logs.FOLDER + log: text for log, text in agent_logs.unpack(data).items()}


def place_of(name: str) -> str:
    """Where in a trial's folder a file of a try goes.

    Raises:
        ExportError: a name that leads out of it; no node of ours writes one.
    """
    if name != str(PurePosixPath(name)) or name.startswith("/") or ".." in name.split("/"):
        raise ExportError(f"a record names a file {name!r}, which is no plain name")
    for ours, theirs in PLACES:
        if name == ours:
            return theirs
    return next(
        theirs + name.removeprefix(begins) for begins, theirs in FOLDERS if name.startswith(begins)
    )


def _line(record: TryRecord) -> str:
    told = f"{record.ended_at} {record.task} × {record.condition} #{record.index} try {record.try_}"
    reward = "" if record.reward is None else f", reward {record.reward:g}"
    why = "" if record.cause == "none" else f", {record.blame}: {record.cause} ({record.detail})"
    return f"{told}: {record.verdict}{reward}{why}"


def _write_json(path: Path, document: Mapping[str, Any]) -> None:
    data = json.dumps(document, indent=4, ensure_ascii=False) + "\n"
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644), "wb") as stream:
        stream.write(data.encode("utf-8", "replace"))
