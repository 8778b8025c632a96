"""What must hold after every fault."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from tests.faults.sweeps import Sweep
from tests.faults.table import PROPERTY, Row

NODES = 3
"""Ray nodes of the cluster."""

Record = Callable[[str, Any], None]
"""pytest's ``record_property``."""


def check(here: Sweep, fault: str, record: Record) -> None:
    """Every planned attempt has one result, and nothing is left; notes a row of the table."""
    row = here.row(fault)
    record(PROPERTY, row.text())
    assert row == Row(fault, row.resumed, here.planned, here.planned, 0, 0, 0)


def busy(here: Sweep) -> list[int]:
    """The processes of nodes that have containers running, the busiest first."""
    found = here.world.containers(here.id, running=True)
    owners = Counter(int(each["Labels"]["apiary.owner"].partition(":")[0]) for each in found)
    return [pid for pid, _ in owners.most_common()]


def held(here: Sweep, pid: int) -> set[str]:
    """The attempts whose containers a node's process has running."""
    return {
        each["Labels"]["apiary.attempt"]
        for each in here.world.containers(here.id, running=True)
        if each["Labels"]["apiary.owner"].startswith(f"{pid}:")
    }
