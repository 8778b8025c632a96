"""What Prometheus sees of a sweep: throughput, and whose fault it was when a try is no pass.

The only door to ``prometheus_client`` on the driver's side. No id of an attempt or a try is ever
a label; a label's values are the sweep's conditions and closed enums, so the number of series is
bounded. Counters are born at 0 with every cause, so that a first failure shows as an increase.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    disable_created_metrics,
    generate_latest,
    start_http_server,
)

from scheduler.errors import MetricsAddressError
from scheduler.view import Observer, SweepView
from workers.contract.outcome import BLAME_OF, Phase
from workers.contract.result import TryRecord
from workers.contract.task import DEFAULT_ATTEMPTS

TRY_SECONDS = (0.5, 1, 2, 3, 5, 10, 20, 30, 60, 120, 300, 600, 1800)
PHASE_SECONDS = (0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900)
STATES = ("planned", "running", "passed", "failed", "invalid")
"""Of an attempt, by the queue's names; each is counted in exactly one."""


class SweepMetrics:
    """An observer that keeps the metrics of one sweep."""

    def __init__(self, sweep: str, conditions: Sequence[str]) -> None:
        """Declares every metric; counters start at 0 for each condition, layer and cause."""
        # A counter's time of birth would be one more series for each, and tells nothing here.
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self.registry = CollectorRegistry(auto_describe=True)
        self._sweep = sweep
        self._tries = Counter(
            "apiary_tries",
            "Tries that ended, by who caused what is not a pass; a pass has blame and cause none.",
            ("sweep", "condition", "layer", "blame", "cause"),
            registry=self.registry,
        )
        self._seconds = Histogram(
            "apiary_try_seconds",
            "Time of a try over all its phases.",
            ("sweep",),
            buckets=TRY_SECONDS,
            registry=self.registry,
        )
        self._phases = Histogram(
            "apiary_phase_seconds",
            "Time of one phase of a try.",
            ("sweep", "phase"),
            buckets=PHASE_SECONDS,
            registry=self.registry,
        )
        self._attempts = self._gauge(
            "apiary_queue_attempts",
            "Attempts of the sweep by state; invalid ones have spent their tries.",
            "condition",
            "state",
        )
        self._progress = self._gauge("apiary_sweep_progress_ratio", "Settled of all attempts.")
        self._rate = self._gauge("apiary_sweep_attempts_per_minute", "Attempts settled a minute.")
        self._eta = self._gauge("apiary_sweep_eta_seconds", "Time to the end, while known.")
        self._nodes = self._gauge("apiary_nodes", "Nodes that take leases.")
        self._cost = Counter(
            "apiary_model_cost_usd",
            "Cost of ended tries, by the condition's prices, over calls whose usage is known.",
            ("sweep", "condition"),
            registry=self.registry,
        )
        self._seconds.labels(sweep)
        for condition in conditions:
            self._cost.labels(sweep, condition)
            for layer in DEFAULT_ATTEMPTS:
                for cause, blame in BLAME_OF.items():
                    self._tries.labels(sweep, condition, layer, blame.value, cause.value)
        for phase in Phase:
            self._phases.labels(sweep, phase.value)

    def _gauge(self, name: str, text: str, *labels: str) -> Gauge:
        return Gauge(name, text, ("sweep", *labels), registry=self.registry)

    def moved(self, view: SweepView) -> None:
        """Sets what a moment of the sweep shows."""
        settled = planned = 0
        for each in view.conditions:
            counts = (each.waiting, each.running, each.passed, each.failed, each.invalid)
            for state, count in zip(STATES, counts, strict=True):
                self._attempts.labels(self._sweep, each.condition, state).set(count)
            planned += sum(counts)
            settled += each.passed + each.failed + each.invalid
        self._progress.labels(self._sweep).set(settled / planned if planned else 1.0)
        self._rate.labels(self._sweep).set(view.attempts_per_minute)
        self._nodes.labels(self._sweep).set(view.nodes)
        if view.eta_s is not None:
            self._eta.labels(self._sweep).set(view.eta_s)

    def ended(self, record: TryRecord) -> None:
        """Counts a try that ended."""
        self._tries.labels(
            self._sweep, record.condition, record.layer, record.blame.value, record.cause.value
        ).inc()
        self._seconds.labels(self._sweep).observe(sum(record.phase_seconds.values()))
        for phase, seconds in record.phase_seconds.items():
            self._phases.labels(self._sweep, phase).observe(seconds)
        self._cost.labels(self._sweep, record.condition).inc(record.usage.cost_usd)

    def note(self, text: str) -> None:
        """A sentence is no metric."""

    def snapshot(self) -> bytes:
        """All metrics in Prometheus' text format."""
        return bytes(generate_latest(self.registry))


class Watched:
    """Several observers as one."""

    def __init__(self, *observers: Observer) -> None:
        self._observers = observers

    def moved(self, view: SweepView) -> None:
        """See ``Observer``."""
        for observer in self._observers:
            observer.moved(view)

    def ended(self, record: TryRecord) -> None:
        """See ``Observer``."""
        for observer in self._observers:
            observer.ended(record)

    def note(self, text: str) -> None:
        """See ``Observer``."""
        for observer in self._observers:
            observer.note(text)


def metrics_key(sweep: str) -> str:
    """Where a sweep's last metrics are kept, so that a short sweep's are not lost."""
    return f"sweeps/{sweep}/report/metrics.txt"


@contextmanager
def served(metrics: SweepMetrics, port: int | None, address: str) -> Iterator[str | None]:
    """Serves the metrics at ``/metrics`` for as long as it is open.

    Args:
        metrics: what to serve.
        port: where; 0 for a free one, null for nowhere.
        address: the interface, for example ``127.0.0.1``.

    Yields:
        The URL, or null.

    Raises:
        MetricsAddressError: the port is taken, or the address is none of this machine's.
    """
    if port is None:
        yield None
        return
    try:
        server, thread = start_http_server(port, address, registry=metrics.registry)
    except OSError as error:
        raise MetricsAddressError(
            f"serve metrics on {address} port {port}: {error.strerror}; give another --metrics-port"
        ) from error
    try:
        yield f"http://{address}:{server.server_port}/metrics"
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5.0)
