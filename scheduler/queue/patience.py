"""When a sweep whose breakers stay open ends, and cells are left alone. Pure."""

from __future__ import annotations

from collections.abc import Collection

from scheduler.queue.work_queue import WorkQueue
from workers.contract.spec import CellSpec, Limits


def out_of_patience(queue: WorkQueue, nodes: Collection[str], limits: Limits, now: float) -> str:
    """Why nothing more is waited for; empty while there is hope. Asked while no lease is held.

    Attempts that wait for endpoints are waited for until the endpoint that failed last has been
    down for ``endpoint_give_up_s`` without any probe's success, nodes whose breakers are all
    open until the last to open has been so for ``node_give_up_s``.

    Args:
        queue: of the sweep.
        nodes: those that could be given leases.
        limits: of the sweep.
        now: on the queue's clock, seconds.
    """
    down = queue.waiting_for_endpoints()
    if down and now - max(down.values()) >= limits.endpoint_give_up_s:
        told = ", ".join(
            f"{name} for {now - since:.0f} s without a success"
            for name, since in sorted(down.items())
        )
        return f"all open attempts wait for endpoints that are down: {told}"
    since = queue.broken_since(nodes)
    if since is not None and now - since >= limits.node_give_up_s:
        names = ", ".join(sorted(nodes))
        return f"every node fails its trials, for {now - since:.0f} s without a success: {names}"
    return ""


def poison_text(cell: CellSpec, limits: Limits) -> str:
    """That a cell is left alone, and why."""
    return (
        f"cell {cell.cell} is left alone: {limits.poison} tries in a row of {cell.task.name} "
        f"under {cell.condition.condition} gave no verdict"
    )
