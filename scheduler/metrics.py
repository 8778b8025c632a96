"""What Prometheus sees of a sweep: throughput, and whose fault it was when a try is no pass.

A label's values are the sweep's conditions, its tasks and closed enums, so the number of series
is bounded. Counters are born at 0 with every cause, so that a first failure shows as an increase;
since a driver that starts again begins at 0 too, dashboards read the gauge ``attempts``, which is
set from the queue.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from scheduler.view import Standing, SweepView
from workers.contract.outcome import BLAME_OF, RULES, Phase
from workers.contract.result import TryRecord
from workers.contract.task import DEFAULT_ATTEMPTS
from workers.exposition import Exposition, Labels, Metric

TRY_SECONDS = (0.5, 1, 2, 3, 5, 10, 20, 30, 60, 120, 300, 600, 1800)
PHASE_SECONDS = (0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900)
STATES = ("planned", "running", "passed", "failed", "invalid")
"""Of an attempt, as people name them; each is counted in exactly one."""
HELD = frozenset({"leased", "running", "lost"})
"""States of the queue in which a node holds an attempt, or may."""
NODE_STATES = ("serving", "draining", "lost")

MOST_STANDINGS = 30_000
"""Series of ``attempts`` before tasks are no longer told apart: Prometheus shall hold at most
50,000 of a sweep."""

TRIALS = Metric(
    "trials",
    "counter",
    "Attempts settled by a commit, by who caused what is not a pass.",
    labels=("sweep", "condition", "layer", "verdict", "blame", "cause"),
)
TRIES = Metric(
    "tries",
    "counter",
    "Tries that ended, by who caused what is not a pass; a pass has blame and cause none.",
    labels=("sweep", "condition", "layer", "blame", "cause"),
)
ATTEMPTS = Metric(
    "attempts",
    "gauge",
    "Attempts by how they stand now, right after a restart too; the task is empty where there "
    "are too many to tell apart.",
    labels=("sweep", "condition", "task", "state", "verdict", "blame", "cause"),
)
QUEUE_ATTEMPTS = Metric(
    "queue_attempts",
    "gauge",
    "Attempts by state; invalid ones have spent their tries.",
    labels=("sweep", "condition", "state"),
)
TRIAL_TIME = Metric(
    "trial_seconds",
    "histogram",
    "Time of a try over all its phases.",
    "seconds",
    ("sweep",),
    TRY_SECONDS,
)
PHASE_TIME = Metric(
    "phase_seconds",
    "histogram",
    "Time of one phase of a try.",
    "seconds",
    ("sweep", "phase"),
    PHASE_SECONDS,
)
COVERAGE = Metric(
    "coverage_ratio",
    "gauge",
    "Attempts with a verdict of those that are settled.",
    "ratio",
    ("sweep", "condition"),
)
GATE = Metric(
    "coverage_gate_ratio",
    "gauge",
    "The coverage below which the sweep has no headline.",
    "ratio",
    ("sweep",),
)
SCORE = Metric(
    "score",
    "gauge",
    "Mean of the workflow tasks' pass rates so far, over settled attempts.",
    "ratio",
    ("sweep", "condition", "rule"),
)
PROGRESS = Metric("sweep_progress_ratio", "gauge", "Settled of all attempts.", "ratio", ("sweep",))
RATE = Metric(
    "sweep_attempts_per_minute",
    "gauge",
    "Attempts settled a minute, over the last minute.",
    labels=("sweep",),
)
ETA = Metric("sweep_eta_seconds", "gauge", "Time to the end, while known.", "seconds", ("sweep",))
NODES = Metric("nodes", "gauge", "Nodes by state.", labels=("sweep", "state"))
LEASES_EXPIRED = Metric(
    "leases_expired", "counter", "Leases that ended without their node's word.", labels=("sweep",)
)
COST = Metric(
    "sweep_cost_usd",
    "counter",
    "Cost of ended tries, by the condition's prices, over calls whose usage is known.",
    "usd",
    ("sweep", "condition"),
)
BUDGET = Metric(
    "sweep_budget_ratio",
    "gauge",
    "Spent of the sweep's budget, the largest of its figures.",
    "ratio",
    ("sweep",),
)
PARKED = Metric(
    "endpoint_parked",
    "gauge",
    "1 while an endpoint's breaker is open and what uses it waits.",
    labels=("sweep", "endpoint"),
)

DRIVER_METRICS = (
    TRIALS,
    TRIES,
    ATTEMPTS,
    QUEUE_ATTEMPTS,
    TRIAL_TIME,
    PHASE_TIME,
    COVERAGE,
    GATE,
    SCORE,
    PROGRESS,
    RATE,
    ETA,
    NODES,
    LEASES_EXPIRED,
    COST,
    BUDGET,
    PARKED,
)

SERIES_LAST = Metric(
    "schedule_last_success_timestamp_seconds",
    "gauge",
    "When a series last had a run that ended well, seconds since 1970.",
    "seconds",
    ("series",),
)
SERIES_PERIOD = Metric(
    "schedule_period_seconds",
    "gauge",
    "The longest time that a series' timetable leaves between two runs.",
    "seconds",
    ("series",),
)
SERIES_PASS = Metric(
    "series_pass_ratio",
    "gauge",
    "Pass rate of a series' last run.",
    "ratio",
    ("series", "condition"),
)
SERIES_REGRESSIONS = Metric(
    "series_regressions",
    "gauge",
    "Behaviours of a series' last run that are worse than in its baseline.",
    labels=("series",),
)

SERIES_METRICS = (SERIES_LAST, SERIES_PERIOD, SERIES_PASS, SERIES_REGRESSIONS)


class SeriesMetrics:
    """The metrics of timetables: kept by whoever serves them, for all series together."""

    def __init__(self) -> None:
        self.exposition = Exposition(SERIES_METRICS)
        self._conditions: dict[str, Mapping[str, float]] = {}

    def planned(self, series: str, period_s: float) -> None:
        """A series is on the timetable; its runs begin at most so far apart."""
        self.exposition.set(SERIES_PERIOD, period_s, (series,))

    def succeeded(
        self, series: str, at_s: float, pass_ratios: Mapping[str, float], regressions: int
    ) -> None:
        """A run of the series ended well.

        Args:
            series: its name.
            at_s: when, seconds since 1970.
            pass_ratios: by condition; one that an earlier run had is shown no more.
            regressions: behaviours that are worse than in the baseline.
        """
        shown = self.exposition
        shown.set(SERIES_LAST, at_s, (series,))
        shown.set(SERIES_REGRESSIONS, regressions, (series,))
        self._conditions[series] = pass_ratios
        shown.replace(
            SERIES_PASS,
            {
                (name, condition): ratio
                for name, ratios in self._conditions.items()
                for condition, ratio in ratios.items()
            },
        )


class SweepMetrics:
    """An observer that keeps the metrics of one sweep."""

    def __init__(
        self,
        sweep: str,
        conditions: Sequence[str],
        *,
        canaries: Collection[str] = (),
        endpoints: Sequence[str] = (),
        coverage_gate: float | None = None,
    ) -> None:
        """Counters start at 0 for each condition, layer and cause.

        ``canaries`` are conditions too, but none that is measured: nothing has them as a label.
        """
        self.exposition = Exposition(DRIVER_METRICS)
        self._sweep = sweep
        self._endpoints = tuple(endpoints)
        self._expired = 0
        self._canaries = frozenset(canaries)
        self._standings: Mapping[Standing, int] | None = None
        """As they are shown."""
        self._by_task = True
        shown = self.exposition
        for condition in conditions:
            shown.born(COST, (sweep, condition))
            for layer in DEFAULT_ATTEMPTS:
                for cause, blame in BLAME_OF.items():
                    verdict, whose = RULES[blame].verdict.value, (blame.value, cause.value)
                    shown.born(TRIES, (sweep, condition, layer, *whose))
                    if verdict != "invalid":
                        shown.born(TRIALS, (sweep, condition, layer, verdict, *whose))
        for phase in Phase:
            shown.born(PHASE_TIME, (sweep, phase.value))
        shown.born(TRIAL_TIME, (sweep,))
        shown.born(LEASES_EXPIRED, (sweep,))
        if coverage_gate is not None:
            shown.set(GATE, coverage_gate, (sweep,))

    def moved(self, view: SweepView) -> None:
        """Sets what a moment of the sweep shows."""
        sweep, shown = self._sweep, self.exposition
        settled = planned = 0
        for each in view.conditions:
            counts = (each.waiting, each.running, each.passed, each.failed, each.invalid)
            valid = each.passed + each.failed
            planned += sum(counts)
            settled += valid + each.invalid
            if each.condition in self._canaries:
                continue
            for state, count in zip(STATES, counts, strict=True):
                shown.set(QUEUE_ATTEMPTS, count, (sweep, each.condition, state))
            if valid + each.invalid:
                share = valid / (valid + each.invalid)
                shown.set(COVERAGE, share, (sweep, each.condition))
        shown.set(PROGRESS, settled / planned if planned else 1.0, (sweep,))
        shown.set(RATE, view.attempts_per_minute, (sweep,))
        shown.replace(ETA, {} if view.eta_s is None else {(sweep,): view.eta_s})
        draining = sum(bool(node.draining) for node in view.node_views)
        for state, count in zip(
            NODE_STATES, (view.nodes - draining, draining, view.lost_nodes), strict=True
        ):
            shown.set(NODES, count, (sweep, state))
        shown.add(LEASES_EXPIRED, view.expired_leases - self._expired, (sweep,))
        self._expired = view.expired_leases
        for endpoint in self._endpoints:
            shown.set(PARKED, endpoint in view.parked_endpoints, (sweep, endpoint))
        if view.budget_share is not None:
            shown.set(BUDGET, view.budget_share, (sweep,))
        if view.standings is not self._standings:
            self._standings = view.standings
            self._stand(view.standings)

    def _stand(self, standings: Mapping[Standing, int]) -> None:
        """Shows how the attempts stand."""
        sweep = self._sweep
        if self._canaries:
            of = standings.items()
            standings = {each: n for each, n in of if each.condition not in self._canaries}
        found = attempts_by_standing(sweep, standings, by_task=self._by_task)
        if len(found) > MOST_STANDINGS:
            # For good: series that come and go would be more than either.
            self._by_task = False
            found = attempts_by_standing(sweep, standings, by_task=False)
        self.exposition.replace(ATTEMPTS, found)
        self.exposition.replace(SCORE, scores(sweep, standings))

    def ended(self, record: TryRecord) -> None:
        """Counts a try that ended."""
        shown, whose = self.exposition, (record.blame.value, record.cause.value)
        place = (self._sweep, record.condition, record.layer)
        shown.observe(TRIAL_TIME, sum(record.phase_seconds.values()), (self._sweep,))
        for phase, seconds in record.phase_seconds.items():
            shown.observe(PHASE_TIME, seconds, (self._sweep, phase))
        if record.condition in self._canaries:
            return
        shown.add(TRIES, labels=(*place, *whose))
        if record.verdict != "invalid":
            shown.add(TRIALS, labels=(*place, record.verdict.value, *whose))
        shown.add(COST, record.usage.cost_usd, (self._sweep, record.condition))

    def note(self, text: str) -> None:
        """A sentence is no metric."""

    def snapshot(self) -> bytes:
        """All metrics in the OpenMetrics text format."""
        return self.exposition.text()


def attempts_by_standing(
    sweep: str, standings: Mapping[Standing, int], *, by_task: bool
) -> Mapping[Labels, float]:
    """The series of ``attempts``; the task is empty where they are not told apart. Pure.

    What a node holds is ``running``, whatever the queue calls it: each state more is a series
    more for every task and outcome, and none of these lasts.
    """
    counts: Counter[Labels] = Counter()
    for each, count in standings.items():
        task = each.task if by_task else ""
        state = "running" if each.state in HELD else each.state
        counts[(sweep, each.condition, task, state, each.verdict, each.blame, each.cause)] += count
    return counts


def scores(sweep: str, standings: Mapping[Standing, int]) -> Mapping[Labels, float]:
    """The mean of the workflow tasks' rates so far, by condition and rule. Pure.

    Only settled attempts count: the rate of a sweep under way is no estimate of its end where
    slow attempts differ from quick ones.
    """
    tallies: dict[tuple[str, str], Counter[str]] = {}
    for each, count in standings.items():
        if each.layer == "workflow" and each.state in ("committed", "dead"):
            tallies.setdefault((each.condition, each.task), Counter())[each.verdict] += count
    rates: dict[Labels, list[float]] = {}
    for (condition, _), verdicts in tallies.items():
        passed, valid = verdicts["pass"], verdicts["pass"] + verdicts["fail"]
        rates.setdefault((sweep, condition, "strict"), []).append(passed / verdicts.total())
        if valid:
            rates.setdefault((sweep, condition, "valid_only"), []).append(passed / valid)
    return {labels: sum(values) / len(values) for labels, values in rates.items()}


def metrics_key(sweep: str) -> str:
    """Where a sweep's last metrics are kept, so that a short sweep's are not lost."""
    return f"sweeps/{sweep}/report/metrics.txt"
