"""What ``apiary schedule serve`` shows Prometheus of its series, whoever ran them."""

from __future__ import annotations

from datetime import datetime, timedelta

from scheduler.cli.options import human_console
from scheduler.metrics import SeriesMetrics
from scheduler.series.planner import Timetable
from scheduler.series.runner import Runner
from scheduler.series.trend import read_line, trend_stamps
from scheduler.series.trend_format import TrendRecord
from workers.contract.base import FormatError
from workers.storage.interface import StoreError

MOST_SHOWN = 60
"""Lines of a trend that are looked at for one that says something."""


class ShownRuns:
    """Which runs the metrics tell of: those of other machines are found in the store."""

    def __init__(self, metrics: SeriesMetrics) -> None:
        self._metrics = metrics
        self._last: dict[str, str] = {}
        """Series to the due time of its latest line that was read."""

    def look(self, runner: Runner) -> None:
        """Counts the lines that are new; one that cannot be read is told once and hides none."""
        for line in runner.lines:
            series, store = line.schedule.series, line.ledger.store
            try:
                for mark in trend_stamps(store, series)[-MOST_SHOWN:]:
                    if mark > self._last.get(series, ""):
                        try:
                            record = read_line(store, series, mark)
                        except FormatError as error:
                            record = None
                            _tell(series, error)
                        self._last[series] = mark
                        if record is not None:
                            count_run(self._metrics, record)
            except StoreError as error:
                _tell(series, error)  # It is asked again at the next look.


def count_run(metrics: SeriesMetrics, record: TrendRecord) -> None:
    """Shows a run that ended well enough to say something."""
    if not record.counts:
        return
    ratios = {
        each.condition: each.workflow if each.workflow is not None else each.passed / each.planned
        for each in record.conditions
    }
    fallen = sum(test.fallen_since is not None for test in record.judgement.tests)
    at_s = datetime.fromisoformat(record.ended_at).timestamp()
    metrics.succeeded(record.series, at_s, ratios, fallen)


def longest_gap(table: Timetable, now: datetime) -> timedelta:
    """The longest time between two of the due times of the next year, or of the first 400."""
    longest, before = timedelta(), now
    for number in range(400):
        due = table.cron.next_after(before)
        if due is None or (number and due > now + timedelta(days=366)):
            break
        if number:
            longest = max(longest, due - before)
        before = due
    return longest


def _tell(series: str, error: Exception) -> None:
    human_console().print(f"! {series}: {error}", markup=False, soft_wrap=True)
