"""What of old runs may go: logs of their tries. Evidence, rewards and records stay for ever."""

from __future__ import annotations

from datetime import datetime, timedelta

from scheduler.series.records import from_stamp, read_time, run_key, runs_prefix, written
from scheduler.series.trend import read_line, trend_stamps
from workers.storage.interface import Store

LOGS = "logs"
"""The folder of a try that holds what agents, containers and verifiers said."""
REMOVED = "logs-removed.json"


def remove_old_logs(store: Store, series: str, older_than: timedelta, now: datetime) -> int:
    """Deletes the logs of a series' runs that ended so long ago; blocks.

    Returns:
        How many files went.

    Raises:
        FormatError: a line of the trend is not of this version's format.
        StoreError: the store refused; what is left goes the next time.
    """
    removed = 0
    prefix = runs_prefix(series)
    done = {
        key[len(prefix) :].partition("/")[0]
        for key in store.keys(prefix)
        if key.endswith(f"/{REMOVED}")
    }
    for mark in trend_stamps(store, series):
        if mark in done or now - from_stamp(mark) < older_than:
            continue
        record = read_line(store, series, mark)
        if record is None or now - read_time(record.ended_at) < older_than:
            continue
        for key in list(store.keys(f"sweeps/{record.sweep}/tries/")):
            if is_log(key):
                store.delete(key)
                removed += 1
        # After the files: a run whose removal broke off is looked at again.
        note = f'{{"at": "{written(now)}"}}\n'
        store.create(run_key(series, from_stamp(mark), REMOVED), note.encode())
    return removed


def is_log(key: str) -> bool:
    """Whether a key is one of a try's logs: ``sweeps/<s>/tries/<hh>/<attempt>/<try>/logs/…``."""
    parts = key.split("/")
    return len(parts) > 7 and parts[2] == "tries" and parts[6] == LOGS
