"""Writes the table of all metrics from their declarations; a test fails while they differ.

Run ``.venv/bin/python docs/write_metrics.py`` after declaring or changing a metric.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from scheduler.metrics import DRIVER_METRICS, SERIES_METRICS
from workers.exposition import Metric
from workers.metrics import NODE_METRICS

PAGE = Path(__file__).parent / "metrics.md"

HEAD = """# Metrics

Written by `docs/write_metrics.py` from the declarations in `scheduler/metrics.py` and
`workers/metrics.py`. A histogram is read as `_bucket`, `_sum` and `_count`. No label ever names an
attempt or a try. `deploy/monitoring/` has the dashboards, rules and alerts that use them.

Counters begin at 0 with their process, with every cause that there is, so that a first failure
shows. A process may have counted before Prometheus sees it first, so `rate()` and `increase()` may
miss something: the recording rules do without them, and the split of failures is the gauge
`apiary_attempts`, which is right after a restart too.
"""

GROUPS: tuple[tuple[str, str, tuple[Metric, ...]], ...] = (
    (
        "Driver",
        "`apiary run` and `apiary resume` with `--metrics-port`. The last values stay beside the "
        "report, as `report/metrics.txt`.",
        DRIVER_METRICS,
    ),
    (
        "Node",
        "Each node process, where `APIARY_NODE_METRICS` says; a local node with its driver. The "
        "last values stay as `report/metrics-<node>.txt`.",
        NODE_METRICS,
    ),
    ("Timetable", "Whoever runs the timetables.", SERIES_METRICS),
)


def page() -> str:
    """The whole page."""
    parts = [HEAD]
    for title, where, metrics in GROUPS:
        parts.append(f"\n## {title}\n\n{where}\n\n{_table(metrics)}")
    return "".join(parts)


def _table(metrics: Iterable[Metric]) -> str:
    lines = ["| metric | kind | unit | labels | says |", "|---|---|---|---|---|"]
    for each in metrics:
        labels = " ".join(f"`{label}`" for label in each.labels)
        row = (f"`{each.exposed}`", each.kind, each.unit, labels, each.help)
        lines.append("| " + " | ".join(row) + " |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Writes the page."""
    PAGE.write_text(page(), "utf-8")


if __name__ == "__main__":
    main()
