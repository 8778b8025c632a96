"""The sweep of a due time, by the same means as ``apiary run`` and ``apiary resume``."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path

from scheduler.cli.options import human_console
from scheduler.cli.progress import progress
from scheduler.cli.running import Running, metrics_of, report, with_base_digest
from scheduler.cli.sweep_flags import base_of
from scheduler.driver import run_sweep
from scheduler.lock import lock_key, lock_numbers, read_lock, write_lock
from scheduler.lock_plan import key_faults, plan_from_lock
from scheduler.manifest import ManifestError, Overrides, load_sweep
from scheduler.metrics import metrics_key
from scheduler.plan import Plan, make_plan
from scheduler.relay_check import with_relay_seen
from scheduler.series.ledger import sweep_id
from scheduler.series.runner import RunEnd
from scheduler.series.schedule_file import Schedule
from scheduler.settings import Settings
from scheduler.stop import StopSignal
from scheduler.view import Watched
from workers.container.interface import ContainerError
from workers.storage import Store, open_store


class ScheduledSweep:
    """Runs sweeps of due times on this machine or a cluster; see ``RunDoor``."""

    def __init__(
        self, settings: Settings, store_url: str, how: Running, home: Path | None = None
    ) -> None:
        """``store_url`` is where the series are, and so their sweeps."""
        self._settings = settings
        self._store_url = store_url
        self._how = how
        self._home = home

    def __call__(self, schedule: Schedule, due: datetime, stop: StopSignal) -> RunEnd:
        """Plans the sweep, or takes it up from its lock, runs it, and writes its report.

        Raises:
            ManifestError: the sweep file or what it names is wrong, or a key is not set.
            ContainerError: the engine of this machine cannot be used.
            LockError: a task changed while it was planned.
            DriverError: no driver could be started.
            StoreError: the store refused.
        """
        store = open_store(self._store_url)
        plan = self._plan(schedule, due, store)
        how, human = self._how, human_console()
        metrics = metrics_of(plan)

        def keys_are_there() -> None:
            place = lock_key(plan.sweep, plan.number)
            faults = key_faults(place, plan.spec.endpoints, self._settings.environment)
            with_relay_seen(plan, self._settings.environment, key_needed=how.ray_address is None)
            if faults and how.ray_address is None:
                raise ManifestError(faults)

        with progress(human, how.as_json) as shown:
            shown.event("start", sweep=plan.sweep, attempts=len(plan.attempts), store=store.url)
            end = run_sweep(
                plan,
                plan.spec.store,
                n_concurrent=how.n_concurrent or plan.profile.n_concurrent,
                ray_address=how.ray_address,
                observer=Watched(shown, metrics),
                stop=stop,
                before_nodes=keys_are_there,
            )
        if not end.idle:
            store.put(metrics_key(plan.sweep), metrics.snapshot())
        report(store, plan.sweep)
        return RunEnd(end.state, end.reason)

    def _plan(self, schedule: Schedule, due: datetime, store: Store) -> Plan:
        sweep = sweep_id(schedule, due)
        numbers = lock_numbers(store, sweep)
        if numbers:
            return plan_from_lock(read_lock(store, sweep, numbers[-1]))
        plan = planned(schedule, due, self._settings, self._store_url, self._how.n_concurrent)
        plan = with_relay_seen(
            plan, self._settings.environment, key_needed=self._how.ray_address is None
        )
        try:
            plan = with_base_digest(plan)
        except ContainerError:
            # A cluster's nodes have engines of their own; this machine need not have one.
            if self._how.ray_address is None:
                raise
        write_lock(store, plan)
        return plan


def planned(
    schedule: Schedule,
    due: datetime,
    settings: Settings,
    store_url: str,
    n_concurrent: int | None = None,
    *,
    keys_needed: bool = False,
) -> Plan:
    """The plan of a due time's sweep: it is called like the series, and started when it was due.

    Raises:
        ManifestError: with every fault of every file.
    """
    overrides = Overrides(name=schedule.series, store=store_url)
    environment: Mapping[str, str] = {"APIARY_STORE": store_url, **settings.environment}
    return make_plan(
        load_sweep(schedule.sweep_path, overrides),
        started_at=due,
        environment=environment,
        base_image=base_of(settings),
        n_concurrent=n_concurrent,
        keys_needed=keys_needed,
    )
