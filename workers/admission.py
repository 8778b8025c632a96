"""How many trials a node runs at once, and when it takes no more. Pure."""

from __future__ import annotations

from workers.contract.spec import Limits


def slots(
    limits: Limits,
    *,
    n_concurrent: int | None,
    cores: int,
    memory_mb: int,
    task_memory_mb: int,
) -> int:
    """The trials that a node runs at once; at least one.

    Args:
        limits: of the sweep; they hold both overcommit factors.
        n_concurrent: what the operator asked for; null: as many as cores and memory bear.
        cores: of the node.
        memory_mb: of the node.
        task_memory_mb: the largest declaration among the sweep's tasks.
    """
    if n_concurrent is not None:
        return max(1, n_concurrent)
    by_cores = int(cores * limits.cpu_overcommit)
    by_memory = int(memory_mb * limits.memory_overcommit / max(1, task_memory_mb))
    return max(1, min(by_cores, by_memory))


def refusal(limits: Limits, *, disk_free_mb: int) -> str:
    """Why a node may take no more leases; empty: it may."""
    if disk_free_mb < limits.disk_free_mb:
        return f"disk: {disk_free_mb} MB free, fewer than limits.disk_free_mb {limits.disk_free_mb}"
    return ""
