"""From a plan to a report: what ``run`` and ``resume`` have in common."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from types import FrameType

from rich.console import Console

from scheduler.cli.exits import Exit
from scheduler.cli.options import MetricsOptions, data_console, human_console
from scheduler.cli.progress import JsonProgress, progress
from scheduler.cli.prometheus import watched_by_prometheus
from scheduler.driver import run_sweep
from scheduler.errors import ClusterError
from scheduler.growth import Growth, check_base
from scheduler.lock import lock_numbers, write_lock
from scheduler.metrics import SweepMetrics, metrics_key
from scheduler.plan import Plan
from scheduler.report.collect import collect
from scheduler.report.page import write_report
from scheduler.report.score import score
from scheduler.report.summary import Summary
from scheduler.report.tables import closing_tables
from scheduler.retry import DeadRetry
from scheduler.stop import StopSignal
from scheduler.view import SweepEnd, Watched
from workers.container.api import DockerApi, MissingError
from workers.container.interface import ContainerError
from workers.journal import LogFormat
from workers.storage import Store, StoreError, open_store

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
    metrics: MetricsOptions = field(default_factory=MetricsOptions)
    retry: DeadRetry | None = None
    """Which dead attempts get fresh tries; null: none."""
    log_format: LogFormat = "json"
    max_nodes: int | None = None
    """Nodes that the cluster is asked for, at most; null: those that are there are used."""


def start_sweep(plan: Plan, how: Running, *, lock_only: bool = False) -> Exit:
    """Writes the first lock of a planned sweep and, unless that is all, runs it.

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
        if how.ray_address is None and not lock_only:
            raise
    write_lock(store, plan)
    return _locked(plan, how) if lock_only else run_to_report(plan, store, how)


def grow_sweep(growth: Growth, store: Store, how: Running, *, lock_only: bool) -> Exit:
    """Writes the next lock of a sweep, if it says something new, and goes on with it.

    Raises:
        ContainerError: this machine is to run trials, and its engine lacks the base image.
        LockError: a task changed since it was planned, the base image is another one, or
            somebody else has grown the sweep in the meantime.
        DriverError: no driver could be started.
        StoreError: the store refused.
    """
    plan = growth.plan
    if growth.is_new:
        try:
            check_base(growth.before, with_base_digest(plan).base_image)
        except ContainerError:
            if how.ray_address is None and not lock_only:
                raise
        write_lock(store, plan)
    if lock_only:
        return _locked(plan, how)
    slots = how.n_concurrent or plan.profile.n_concurrent
    return run_to_report(plan, store, replace(how, n_concurrent=slots))


def _locked(plan: Plan, how: Running) -> Exit:
    """Says that a sweep can be run from its lock."""
    if how.as_json:
        JsonProgress(sys.stdout).event("locked", sweep=plan.sweep, lock=plan.number)
    else:
        text = f"lock-{plan.number}.json is written; run it with: apiary resume {plan.sweep}"
        human_console().print(text, soft_wrap=True)
    return Exit.DONE


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


def run_to_report(
    plan: Plan,
    store: Store,
    how: Running,
    before_nodes: Callable[[], None] = lambda: None,
) -> Exit:
    """Runs a sweep that has a lock until it is settled or stopped, then scores it.

    ``before_nodes`` is called where something is open; what it raises is raised here.

    Raises:
        DriverError: no driver could be started.
        MetricsAddressError: the metrics cannot be served where they should be.
        StoreError: the store refused.
    """
    human = human_console()
    metrics = metrics_of(plan)
    with (
        telling_how_to_go_on(plan.sweep) as told_before,
        watched_by_prometheus(metrics, how.metrics) as seen,
        progress(human, how.as_json) as shown,
        stopped_by_operator() as stop,
    ):
        shown.event("start", sweep=plan.sweep, attempts=len(plan.attempts), store=plan.spec.store)
        if seen.url is not None:
            shown.note(f"metrics: {seen.url}")
        end = run_sweep(
            plan,
            plan.spec.store,
            n_concurrent=how.n_concurrent,
            ray_address=how.ray_address,
            observer=Watched(shown, metrics, seen),
            stop=stop,
            retry=how.retry,
            before_nodes=before_nodes,
            node_metrics=how.metrics.of_nodes,
            log_format=how.log_format,
            max_nodes=how.max_nodes,
        )
        if end.state == "infrastructure":
            told_before.append(end.reason)
        if not end.idle:
            store.put(metrics_key(plan.sweep), metrics.snapshot())
        if lock_numbers(store, plan.sweep)[-1] > plan.number:
            shown.note(f"the sweep has grown meanwhile; go on with: apiary resume {plan.sweep}")
        summary, page = report(store, plan.sweep)
        code = exit_of_run(end, summary)
        shown.event(
            "end",
            sweep=plan.sweep,
            state=end.state,
            reason=end.reason,
            revived=end.revived,
            exit_code=int(code),
            report=page,
            summary=summary.model_dump(mode="json"),
        )
        if not how.as_json:
            show_end(data_console(), human, summary, page, end)
        if seen.fault:
            shown.note(seen.fault)
        seen.linger(lambda: stop.draining)
    return code


def metrics_of(plan: Plan) -> SweepMetrics:
    """The metrics of a sweep before anything of it has run, those of canaries left out."""
    return SweepMetrics(
        plan.sweep,
        [name for name in plan.conditions if name not in plan.canaries],
        canaries=plan.canaries,
        # A canary's endpoint, which the node serves itself, has its condition's name.
        endpoints=[name for name in plan.spec.endpoints if name not in plan.canaries],
        coverage_gate=plan.scoring.coverage_gate,
    )


@contextmanager
def telling_how_to_go_on(sweep: str) -> Iterator[list[str]]:
    """What fails of a sweep that has begun says what to do about it.

    Gives a list for what is to be told before that: why the sweep had ended, if it had.

    Raises:
        StoreError, ClusterError: what was raised, and the command that goes on.
    """
    before: list[str] = []
    try:
        yield before
    except StoreError as error:
        hint = f"once the store answers again: apiary resume {sweep}"
        raise type(error)("\n".join([*before, str(error), hint])) from error
    except ClusterError as error:
        hint = f"once that is mended: apiary resume {sweep}"
        raise type(error)("\n".join([*before, str(error), hint])) from error


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
        if end.gave_way:
            human.print("this command is not needed any more: the other one goes on")
        else:
            human.print(f"once that is mended: apiary resume {summary.sweep}", soft_wrap=True)
    elif end.state == "budget":
        human.print(f"the sweep's budget is spent: {end.reason}", markup=False, soft_wrap=True)
        human.print(
            f"with a higher one: apiary resume {summary.sweep} --budget-usd N (or --budget-calls, "
            "--budget-input-tokens, --budget-output-tokens)",
            markup=False,
            soft_wrap=True,
        )


def exit_of_run(end: SweepEnd, summary: Summary) -> Exit:
    """What the exit code of a run says."""
    match end.state:
        case "interrupted":
            return Exit.INTERRUPTED
        case "infrastructure":
            return Exit.INFRASTRUCTURE
        case "budget":
            return Exit.BUDGET
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
