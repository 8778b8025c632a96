"""From a plan to a report: what ``run`` and ``resume`` have in common."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from types import FrameType

from rich.console import Console

from scheduler.cli.exits import Exit
from scheduler.cli.options import data_console, human_console
from scheduler.cli.progress import progress
from scheduler.driver import run_sweep
from scheduler.lock import write_lock
from scheduler.metrics import SweepMetrics, Watched, metrics_key, served
from scheduler.plan import Plan
from scheduler.report.collect import collect
from scheduler.report.page import write_report
from scheduler.report.score import score
from scheduler.report.summary import Summary
from scheduler.report.tables import closing_tables
from scheduler.stop import StopSignal
from scheduler.view import SweepEnd
from workers.container.api import DockerApi, MissingError
from workers.container.interface import ContainerError
from workers.storage import Store, open_store

IMAGE_S = 30.0
"""How long the engine may take to name an image."""


@dataclass(frozen=True)
class Running:
    """How a sweep is to be run; none of it is part of the sweep."""

    n_concurrent: int | None
    """Trials at once on a node; null: by its cores and memory."""
    ray_address: str | None
    """A running cluster; null: a local Ray is started and ended."""
    as_json: bool
    metrics_port: int | None = None
    """Null: metrics are not served, only kept beside the report."""
    metrics_address: str = "127.0.0.1"


def start_sweep(plan: Plan, how: Running) -> Exit:
    """Writes the first lock of a planned sweep and runs it.

    Raises:
        ContainerError: this machine is to run trials, and its engine lacks the base image.
        LockError: a task changed since it was planned.
        DriverError: no driver could be started.
        StoreError: the store refused.
    """
    store = open_store(plan.spec.store)
    try:
        plan = with_base_digest(plan)
    except ContainerError:
        # A cluster's nodes have engines of their own; this machine need not have one.
        if how.ray_address is None:
            raise
    write_lock(store, plan)
    return run_to_report(plan, store, how)


def with_base_digest(plan: Plan) -> Plan:
    """The plan with the digest that its base image has in this machine's engine.

    Raises:
        ContainerError: the engine cannot be reached, or has no such image.
    """
    if plan.base_image is None:
        return plan
    digest = image_digest(plan.base_image.reference)
    return replace(plan, base_image=plan.base_image.model_copy(update={"digest": digest}))


def image_digest(reference: str) -> str:
    """The digest that a base image has in this machine's engine.

    Raises:
        ContainerError: the engine cannot be reached, or has no such image.
    """
    api = DockerApi()
    try:
        return api.image_id(reference, IMAGE_S)
    except MissingError as error:
        raise ContainerError(
            f"this Docker engine has no image {reference}, which task images are built on: run "
            "`bash deploy/setup.sh`, or name another in APIARY_BASE_IMAGE"
        ) from error
    finally:
        api.close()


def run_to_report(plan: Plan, store: Store, how: Running) -> Exit:
    """Runs a sweep that has a lock until it is settled or stopped, then scores it.

    Raises:
        DriverError: no driver could be started.
        MetricsAddressError: the metrics cannot be served where they should be.
        StoreError: the store refused.
    """
    human = human_console()
    metrics = SweepMetrics(plan.sweep, plan.conditions)
    with (
        served(metrics, how.metrics_port, how.metrics_address) as metrics_url,
        progress(human, how.as_json) as shown,
        stopped_by_operator() as stop,
    ):
        shown.event("start", sweep=plan.sweep, attempts=len(plan.attempts), store=plan.spec.store)
        if metrics_url is not None:
            shown.note(f"metrics: {metrics_url}")
        end = run_sweep(
            plan,
            plan.spec.store,
            n_concurrent=how.n_concurrent,
            ray_address=how.ray_address,
            observer=Watched(shown, metrics),
            stop=stop,
        )
        if not end.idle:
            store.put(metrics_key(plan.sweep), metrics.snapshot())
        summary, page = report(store, plan.sweep)
        code = exit_of_run(end, summary)
        shown.event(
            "end",
            sweep=plan.sweep,
            state=end.state,
            reason=end.reason,
            exit_code=int(code),
            report=page,
            summary=summary.model_dump(mode="json"),
        )
    if not how.as_json:
        show_end(data_console(), human, summary, page, end)
    return code


def report(store: Store, sweep: str) -> tuple[Summary, str]:
    """Scores a sweep as it stands in the store and writes its page.

    Returns:
        The summary, and where the page is.
    """
    results = collect(store, sweep)
    summary = score(results)
    return summary, write_report(store, results, summary)


def show_end(data: Console, human: Console, summary: Summary, page: str, end: SweepEnd) -> None:
    """The closing tables and the place of the report, and what is to be done next."""
    data.print(closing_tables(summary))
    data.print(f"report: {page}", soft_wrap=True)
    if end.idle:
        human.print(end.reason, markup=False, soft_wrap=True)
    elif end.state == "interrupted":
        human.print(f"interrupted; go on with: apiary resume {summary.sweep}", soft_wrap=True)
    elif end.state == "infrastructure":
        human.print(f"✗ {end.reason}", markup=False, soft_wrap=True)
        human.print(f"once that is mended: apiary resume {summary.sweep}", soft_wrap=True)


def exit_of_run(end: SweepEnd, summary: Summary) -> Exit:
    """What the exit code of a run says."""
    match end.state:
        case "interrupted":
            return Exit.INTERRUPTED
        case "infrastructure":
            return Exit.INFRASTRUCTURE
        case "settled":
            return Exit.DONE if summary.conclusive else Exit.INCONCLUSIVE


@contextmanager
def stopped_by_operator() -> Iterator[StopSignal]:
    """Turns Ctrl-C and SIGTERM into requests to stop, for as long as it is open."""
    stop = StopSignal()

    def ask(_signal: int, _frame: FrameType | None) -> None:
        stop.request()

    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
