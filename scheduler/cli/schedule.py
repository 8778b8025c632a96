"""``apiary schedule``: sweeps on a timetable."""

from __future__ import annotations

import asyncio
import json
import platform
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import click
from rich.text import Text

from scheduler.cli.exits import Exit
from scheduler.cli.options import (
    data_console,
    human_console,
    json_option,
    opened,
    ray_option,
    store_option,
)
from scheduler.cli.shown_runs import ShownRuns, count_run, longest_gap
from scheduler.errors import DriverError
from scheduler.metrics import SeriesMetrics
from scheduler.report.tables import plain_table
from scheduler.series.closing import Done
from scheduler.series.ledger import SILENT_S, Ledger, sweep_id
from scheduler.series.planner import Timetable, timetable_of
from scheduler.series.records import written
from scheduler.series.runner import Runner
from scheduler.series.schedule_file import Schedule, load_schedules, seconds
from scheduler.series.trend import read_trend
from scheduler.settings import read_settings
from scheduler.stop import Stop
from workers.container.interface import ContainerError
from workers.contract.base import FormatError
from workers.exposition import served
from workers.storage import Store
from workers.storage.interface import StoreError

LOOK_S = 30.0
"""``serve`` looks at the store and the clock at least so often: a clock may step, a run may die."""
PAUSE_S = 0.2
WORST = (Exit.INFRASTRUCTURE, Exit.REGRESSION, Exit.BUDGET, Exit.INCONCLUSIVE)
"""Of several runs the first of these makes the exit code."""

COLUMNS = ("series", "when", "next", "last", "outcome")

_files = click.argument("schedules", nargs=-1, type=click.Path(path_type=Path), metavar="[FILE]...")


@click.group("schedule")
def command() -> None:
    """Run sweeps on a timetable.

    FILE is a schedule, or a folder of them; without one, all of manifests/schedules.
    """


@command.command("list")
@_files
@store_option
@json_option
def list_schedules(schedules: tuple[Path, ...], store_url: str | None, as_json: bool) -> int:
    """Show when each series runs next, and what its last run came to."""
    found, store, now = load_schedules(schedules), opened(store_url), _now()
    rows = [_row(each, store, now) for each in found]
    if as_json:
        click.echo(json.dumps(rows, sort_keys=True))
        return Exit.DONE
    table = plain_table("series")
    for heading in ("when", "next", "last run", "came to"):
        table.add_column(heading)
    for row in rows:
        table.add_row(*(Text(str(row[name])) for name in COLUMNS))
    data_console().print(table)
    return Exit.DONE


@command.command("next")
@_files
@click.option(
    "-n",
    "--count",
    default=5,
    show_default=True,
    type=click.IntRange(1, 1000),
    help="So many due times of each series.",
)
@json_option
def next_times(schedules: tuple[Path, ...], count: int, as_json: bool) -> int:
    """Show the next due times of every series, and when their runs start."""
    now = _now()
    for each in load_schedules(schedules):
        table, after = timetable_of(each), now
        for _ in range(count):
            due = table.cron.next_after(after)
            if due is None:
                break
            after = due
            _show_due(each, table, due, as_json)
    return Exit.DONE


@command.command("tick")
@_files
@ray_option
@store_option
@json_option
def tick(
    schedules: tuple[Path, ...], ray_address: str | None, store_url: str | None, as_json: bool
) -> int:
    """Run what is due, once, and exit.

    For cron, systemd timers and Kubernetes; every few minutes is often enough. The exit code is
    that of the worst run: 5 for an outage, 3 for a regression, 6 for a spent budget, 4 where
    nothing can be told.
    """
    done: list[Done] = []
    with _runner(schedules, ray_address, store_url, as_json, done.append) as (runner, stop):
        runner.tick()
        until = time.monotonic() + SILENT_S + 5.0
        # A runner of another machine that may be dead is known for it after some silence.
        while runner.undecided() and not stop.draining and time.monotonic() < until:
            _pause(5.0, stop)
            runner.tick()
        if stop.draining:
            return Exit.INTERRUPTED
        if runner.faults:
            return Exit.INFRASTRUCTURE
    codes = {each.exit_code for each in done}
    return next((code for code in WORST if code in codes), Exit.DONE)


@command.command("serve")
@_files
@ray_option
@click.option(
    "--metrics-port",
    type=click.IntRange(0, 65535),
    metavar="PORT",
    help="Serve the series' metrics to Prometheus; 0 takes a free port.",
)
@click.option(
    "--metrics-address",
    default="127.0.0.1",
    show_default=True,
    metavar="ADDRESS",
    help="The interface that metrics are served on.",
)
@store_option
@json_option
def serve(
    schedules: tuple[Path, ...],
    ray_address: str | None,
    metrics_port: int | None,
    metrics_address: str,
    store_url: str | None,
    as_json: bool,
) -> int:
    """Run what is due whenever it is, until Ctrl-C.

    Several may be at work on one store, on any machines: each due run starts once. A first Ctrl-C
    lets running trials finish; the run is taken up again by the next scheduler that looks.
    """
    metrics = SeriesMetrics()

    def after_run(done: Done) -> None:
        count_run(metrics, done.record)

    with (
        ExitStack() as stack,
        _runner(schedules, ray_address, store_url, as_json, after_run) as (runner, stop),
    ):
        human = human_console()
        shown = ShownRuns(metrics)
        for line in runner.lines:
            period = longest_gap(line.table, _now())
            metrics.planned(line.schedule.series, period.total_seconds())
        shown.look(runner)
        if metrics_port is not None:
            url = stack.enter_context(served(metrics.exposition, metrics_port, metrics_address))
            human.print(f"metrics: {url}", markup=False)
        human.print(f"{len(runner.lines)} series; Ctrl-C ends it", markup=False)
        while not stop.draining:
            wait_s = _look(runner)
            shown.look(runner)
            _pause(wait_s, stop)
    return Exit.INTERRUPTED


def _look(runner: Runner) -> float:
    """One look at everything; seconds until the next."""
    try:
        runner.tick()
        upcoming = runner.next_at()
    except (DriverError, StoreError, FormatError) as error:
        # It runs for a year: a store that stumbles is asked again.
        human_console().print(f"! {error}", markup=False, soft_wrap=True)
        return LOOK_S
    if upcoming is None:
        return LOOK_S
    return min(LOOK_S, max(PAUSE_S, (upcoming - _now()).total_seconds()))


@contextmanager
def _runner(
    schedules: tuple[Path, ...],
    ray_address: str | None,
    store_url: str | None,
    as_json: bool,
    after_run: Callable[[Done], None],
) -> Iterator[tuple[Runner, Stop]]:
    found, settings = load_schedules(schedules), read_settings()
    store = opened(store_url, settings)
    # Here because Ray and Docker take a second to load, and a wrong file is told without them.
    from scheduler.cli.running import Running, stopped_by_operator
    from scheduler.cli.scheduled import ScheduledSweep, planned

    for each in found:
        planned(each, _now(), settings, store_url or settings.store_url)
    human = human_console()

    def note(text: str) -> None:
        if as_json:
            click.echo(json.dumps({"event": "note", "at": written(_now()), "text": text}))
        else:
            human.print(f"{_now():%Y-%m-%d %H:%M:%S}Z {text}", markup=False, soft_wrap=True)

    def ended(done: Done) -> None:
        if as_json:
            click.echo(
                json.dumps(
                    {
                        "event": "run",
                        "sweep": done.record.sweep,
                        "outcome": done.record.judgement.outcome,
                        "exit_code": done.exit_code,
                        "text": done.text,
                        "notices": list(done.notices),
                    }
                )
            )
        else:
            data_console().print(done.text, markup=False, soft_wrap=True)
            for line in done.notices:
                human.print(line, markup=False, soft_wrap=True)
        after_run(done)
        _drop_images(found, done, ray_address, note)

    with stopped_by_operator() as stop:
        yield (
            Runner(
                store,
                found,
                ScheduledSweep(
                    settings,
                    store_url or settings.store_url,
                    Running(None, ray_address, as_json),
                ),
                environment=settings.environment,
                wall=_now,
                monotonic=time.monotonic,
                operator=stop,
                note=note,
                after_run=ended,
            ),
            stop,
        )


def _drop_images(
    schedules: tuple[Schedule, ...],
    done: Done,
    ray_address: str | None,
    note: Callable[[str], None],
) -> None:
    """Task images of this machine that no sweep has used for as long as the schedule says."""
    kept = next(
        each.file.retention.images for each in schedules if each.series == done.record.series
    )
    if kept is None or ray_address is not None:
        return
    from workers.container.docker import DockerEngine
    from workers.container.reap import Scope, reap

    async def drop() -> int:
        engine = await DockerEngine.open(platform.node())
        try:
            days = seconds(kept) / timedelta(days=1)
            return len((await reap(engine, Scope(unused_days=days))).removed)
        finally:
            await engine.close()

    try:
        count = asyncio.run(drop())
    except ContainerError as error:
        note(f"{done.record.series}: unused images are still there: {error}")
        return
    if count:
        note(f"{done.record.series}: {count} unused images and leftovers are removed")


def _row(schedule: Schedule, store: Store, now: datetime) -> dict[str, Any]:
    upcoming = schedule.cron.next_after(now)
    trend = read_trend(store, schedule.series, 1)
    last = trend[-1] if trend else None
    held = None if not trend and not _has_runs(store, schedule) else _held(store, schedule)
    return {
        "series": schedule.series,
        "file": str(schedule.path),
        "sweep": str(schedule.sweep_path),
        "when": f"{schedule.file.cron} {schedule.file.zone}",
        "next": "-" if upcoming is None else f"{_local(schedule, upcoming):%a %Y-%m-%d %H:%M}",
        "next_utc": None if upcoming is None else written(upcoming),
        "last": "-"
        if last is None
        else f"{_local(schedule, datetime.fromisoformat(last.due)):%a %Y-%m-%d %H:%M}",
        "outcome": "-" if last is None else last.judgement.outcome,
        "at_work": held,
    }


def _has_runs(store: Store, schedule: Schedule) -> bool:
    return next(iter(store.keys(f"series/{schedule.series}/")), None) is not None


def _held(store: Store, schedule: Schedule) -> str | None:
    held = Ledger(store, schedule, wall=_now).history().held
    return None if held is None else sweep_id(schedule, held.due)


def _show_due(schedule: Schedule, table: Timetable, due: datetime, as_json: bool) -> None:
    start = table.starts_at(due)
    if as_json:
        document = {
            "series": schedule.series,
            "due": written(due),
            "starts": written(start),
            "local": _local(schedule, due).isoformat(),
            "sweep": sweep_id(schedule, due),
        }
        click.echo(json.dumps(document, sort_keys=True))
        return
    late = f", starts {_local(schedule, start):%H:%M:%S}" if start != due else ""
    local = _local(schedule, due)
    click.echo(f"{schedule.series}: {local:%a %Y-%m-%d %H:%M %Z} ({written(due)}){late}")


def _local(schedule: Schedule, moment: datetime) -> datetime:
    return moment.astimezone(schedule.cron.zone)


def _now() -> datetime:
    return datetime.now(UTC)


def _pause(wait_s: float, stop: Stop) -> None:
    until = time.monotonic() + wait_s
    while not stop.draining and (left := until - time.monotonic()) > 0:
        time.sleep(min(PAUSE_S, left))
