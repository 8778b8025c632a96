"""Dividing what there is by what is wanted. Pure."""

from __future__ import annotations

from collections.abc import Mapping


def shares(whole: float, wanted: Mapping[str, float]) -> dict[str, float]:
    """Parts that sum up to the whole, where anybody is there to have it.

    Where it is enough for all, what is left is divided evenly; else by what each wants. One that
    wants nothing now counts as wanting one, so that its next request need not wait.
    """
    if not wanted:
        return {}
    counted = {name: max(1.0, each) for name, each in wanted.items()}
    total = sum(counted.values())
    if total <= whole:
        spare = (whole - total) / len(counted)
        return {name: each + spare for name, each in counted.items()}
    return {name: whole * each / total for name, each in counted.items()}


def whole_shares(
    whole: int, wanted: Mapping[str, float], owed: Mapping[str, float]
) -> dict[str, int]:
    """The same in whole parts, the rest to those with the largest fractions.

    ``owed`` is what each got too little before: else the same would always go without where
    there are fewer parts than takers.
    """
    exact = {name: part + owed.get(name, 0.0) for name, part in shares(whole, wanted).items()}
    given = {name: max(0, int(part)) for name, part in exact.items()}
    order = sorted(exact, key=lambda name: (given[name] - exact[name], name))
    left = whole - sum(given.values())
    while left > 0:
        for name in order[:left]:
            given[name] += 1
        left = whole - sum(given.values())
    for name in reversed(order):
        taken = min(given[name], max(0, -left))
        given[name] -= taken
        left += taken
    return given
