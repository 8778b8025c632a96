"""How many nodes a sweep needs of a cluster that grows and shrinks. Pure.

It grows to what its open attempts fill, up to a bound, and gives a node back once those that stay
have room for everything that is open. How much fits on a node is known once one has been opened:
where the operator does not say it, the first node is asked for by itself.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping


def nodes_wanted(
    open_attempts: int, rooms: Mapping[str, int], *, most: int, n_concurrent: int | None
) -> int:
    """How many nodes there should be.

    Args:
        open_attempts: neither settled nor parked.
        rooms: of each node that is there, how many trials it runs at once.
        most: nodes that are ever asked for.
        n_concurrent: trials at once on a node as the operator wants it; null: by its size.

    Returns:
        At least as many as are there, if all of their room is needed; never more than ``most``.
    """
    if open_attempts == 0:
        return 0
    typical = n_concurrent
    if rooms:
        typical = max(1, sum(rooms.values()) // len(rooms))
    if typical is None:
        return 1
    missing = open_attempts - sum(rooms.values())
    more = max(0, -(-missing // typical))
    return min(most, len(rooms) - len(_spare(open_attempts, rooms)) + more)


def may_go(node: str, open_attempts: int, rooms: Mapping[str, int]) -> bool:
    """Whether the others have room for everything that is open."""
    return node in rooms and sum(rooms.values()) - rooms[node] >= max(1, open_attempts)


def _spare(open_attempts: int, rooms: Mapping[str, int]) -> Collection[str]:
    """Nodes that could go one after the other, the smallest first."""
    left = dict(rooms)
    for node in sorted(rooms, key=lambda each: (rooms[each], each)):
        if may_go(node, open_attempts, left):
            del left[node]
    return rooms.keys() - left.keys()
