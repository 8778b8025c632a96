"""Shows what every panel shows of a mixed sweep: ``python -m tests.monitoring.table``."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from tests.monitoring.boards import Panel, panels
from tests.monitoring.scene import Scene, scene

MOST = 6
"""Series of one query that are written out."""
HIDDEN = ("__name__", "job", "instance", "sweep", "role")


def asked(panel: Panel, of: Scene) -> str:
    """The panel's expression with the variables that Grafana would fill in."""
    return panel.expression.replace("$sweep", of.sweep)


def called(panel: Panel, labels: tuple[tuple[str, str], ...]) -> str:
    """What the legend calls a series; a number alone has no name."""
    if not panel.legend:
        return " ".join(f"{k}={v}" for k, v in labels if k not in HIDDEN)
    told = panel.legend
    for name, value in labels:
        told = told.replace(f"{{{{{name}}}}}", value)
    return told


def table(of: Scene) -> list[str]:
    """A line for each series of each panel, as it was last while the sweep ran."""
    lines = []
    for panel in panels():
        found = sorted(of.latest(asked(panel, of)).items(), key=lambda each: -each[1])
        if not found:
            lines.append(f"{panel.board:8} {panel.title:30} (empty)")
        for labels, value in found[:MOST]:
            told = called(panel, labels)
            lines.append(f"{panel.board:8} {panel.title:30} {value:>14.6g}  {told}")
        if len(found) > MOST:
            lines.append(f"{panel.board:8} {panel.title:30} {'':>14}  and {len(found) - MOST} more")
    return lines


def main() -> None:
    """Runs the sweep and prints the table."""
    with tempfile.TemporaryDirectory() as folder, scene(Path(folder) / "home") as made:
        sys.stdout.write("\n".join(table(made)) + "\n")


if __name__ == "__main__":
    main()
