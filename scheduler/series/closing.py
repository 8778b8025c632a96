"""The end of a run: measured, judged, written as a line of the trend, and told; blocks."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from typing import Literal

from scheduler.report.page import report_keys
from scheduler.series.judge import judge, with_due
from scheduler.series.ledger import sweep_id
from scheduler.series.notice import Notice, not_run_notice, notice_of
from scheduler.series.notify import Notifier
from scheduler.series.records import Outcome, read_time, stamp, written
from scheduler.series.retention import remove_old_logs
from scheduler.series.schedule_file import Schedule, seconds
from scheduler.series.trend import breaks_between, measure, read_line, read_trend, write_line
from scheduler.series.trend_format import TrendRecord
from workers.contract.base import FormatError
from workers.storage.interface import Store, StoreError

EXIT_CODES: dict[Outcome, int] = {
    "pass": 0,
    "baseline": 0,
    "regression": 3,
    "inconclusive": 4,
    "outage": 5,
    "deadline": 5,
    "budget": 6,
    "cancelled": 0,
}
"""What a command ends with that ran it; the meanings are those of every command."""

MOST_BEFORE = 120
"""Lines before a run that it is judged by."""


@dataclass(frozen=True)
class Done:
    """A run that has ended."""

    record: TrendRecord
    exit_code: int
    text: str
    """At most five lines."""
    notices: tuple[str, ...]
    """How telling people went."""


class Closing:
    """Closes the runs of one series."""

    def __init__(
        self,
        store: Store,
        schedule: Schedule,
        environment: Mapping[str, str],
        wall: Callable[[], datetime],
        notifier: Notifier | None = None,
    ) -> None:
        """``environment`` has the secrets of webhooks, by name."""
        self._store = store
        self._schedule = schedule
        self._wall = wall
        self._notifier = notifier or Notifier(
            schedule.file.notify, schedule.path.parent, environment
        )

    def close(self, due: datetime, state: str, reason: str) -> Done:
        """Judges a run and writes its line; one that has a line keeps it.

        Args:
            due: of the run.
            state: how its sweep ended.
            reason: why, in words.

        Raises:
            FormatError: a record is not of this version's format.
            StoreError: the store refused.
        """
        mark = stamp(due)
        record = read_line(self._store, self._schedule.series, mark)
        if record is None:
            record = write_line(self._store, self._judged(due, mark, state, reason), mark)
        code = EXIT_CODES[record.judgement.outcome]
        notice = notice_of(record, self._wall_text(due), code, self._evidence(record.sweep))
        return Done(record, code, notice.text, self._notifier.tell(notice))

    def not_run(
        self, dues: Sequence[datetime], what: Literal["missed", "skipped"]
    ) -> tuple[str, ...]:
        """Tells of due times that no run comes of, in one notice."""
        last = dues[-1]
        when = self._wall_text(last)
        if len(dues) > 1:
            when = f"{len(dues)} times from {self._wall_text(dues[0])} to {when}"
        notice: Notice = not_run_notice(
            self._schedule.series, sweep_id(self._schedule, last), written(last), when, what
        )
        return self._notifier.tell(notice)

    def clean(self) -> Iterator[str]:
        """Removes what retention lets go, and says what that was, or why it did not go."""
        kept = self._schedule.file.retention.logs
        if kept is None:
            return
        try:
            series = self._schedule.series
            count = remove_old_logs(self._store, series, seconds(kept), self._wall())
        except (FormatError, StoreError) as error:
            yield f"{self._schedule.series}: old logs are still there: {error}"
            return
        if count:
            yield f"{self._schedule.series}: {count} log files older than {kept} are removed"

    @cached_property
    def runs_a_year(self) -> int:
        """How often the series is due in a year, at least once, counted up to 10,000."""
        start = self._wall()
        dues = self._schedule.cron.between(start, start + timedelta(days=365))
        return max(1, sum(1 for _ in itertools.islice(dues, 10_000)))

    def _judged(self, due: datetime, mark: str, state: str, reason: str) -> TrendRecord:
        series, sweep = self._schedule.series, sweep_id(self._schedule, due)
        before = [
            each
            for each in read_trend(self._store, series, MOST_BEFORE + 1)
            if read_time(each.due) < due
        ]
        now = measure(self._store, sweep)
        last = next((each for each in reversed(before) if each.conditions), None)
        breaks = breaks_between(last, now)
        judgement = judge(
            self._store,
            sweep,
            now,
            state,
            reason,
            before,
            breaks,
            self._schedule.file.gate,
            self.runs_a_year,
        )
        return TrendRecord(
            series=series,
            due=written(due),
            zone=self._schedule.file.zone,
            sweep=sweep,
            ended_at=written(self._wall()),
            state=state,
            rule=now.rule,
            coverage_gate=now.coverage_gate,
            surroundings=now.surroundings,
            conditions=now.conditions,
            breaks=breaks,
            judgement=with_due(judgement, mark),
        )

    def _wall_text(self, due: datetime) -> str:
        zone = self._schedule.file.zone
        return f"{self._schedule.cron.wall(due):%Y-%m-%d %H:%M} {zone}"

    def _evidence(self, sweep: str) -> str:
        root = self._store.url.partition("?")[0].removeprefix("file://").rstrip("/")
        return f"{root}/{report_keys(sweep)[0]}"
