"""One sweep of all mistakes that the scripted model can make, as a process of its own.

Every profile that makes a mistake is run once on each task for which its losses are declared. What
came of it goes to the file ``outcome.json`` in the folder given.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from scheduler.dataset.attempts import came_to, lost_dimensions, only, plan_attempts, run_attempts
from scheduler.plan import BaseImage
from scheduler.stop import StopSignal
from tests.base_image import base_image
from workers.model import MISTAKES

ROOT = Path(__file__).resolve().parents[2]
MANIFESTS = ROOT / "manifests"
SOLVER = MANIFESTS / "conditions" / "scripted-solver.yaml"
SHOWN_ELSEWHERE = ("sloppy",)
"""Run by the demonstration."""

CELLS = [
    (task, f"scripted-{name}")
    for name, profile in MISTAKES.items()
    if name not in SHOWN_ELSEWHERE
    for task in profile.loses
]


def main(folder: Path) -> None:
    """Runs all of ``CELLS``."""
    names = sorted({condition for _, condition in CELLS})
    conditions = []
    for name in names:
        conditions.append(folder / f"{name}.yaml")
        conditions[-1].write_text(SOLVER.read_text("utf-8").replace("scripted-solver", name))
    endpoints = folder / "endpoints.json"
    endpoints.write_text(json.dumps({name: {"provider": "scripted"} for name in names}))
    plan = plan_attempts(
        [MANIFESTS / "tasks" / task for task, _ in CELLS],
        MANIFESTS / "tasks",
        MANIFESTS,
        (folder / "store").as_uri(),
        BaseImage(reference=base_image(), digest=None),
        conditions=conditions,
        endpoints=endpoints,
    )
    end, records = run_attempts(only(plan, CELLS), StopSignal())
    cells = [
        {
            "task": task,
            "condition": condition,
            "came_to": came_to(record),
            "detail": record.detail,
            "lost": sorted(lost_dimensions(record)),
        }
        for (task, condition), record in records.by_cell.items()
    ]
    outcome = {"sweep": plan.sweep, "state": end.state, "cells": cells}
    (folder / "outcome.json").write_text(json.dumps(outcome, indent=2))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
