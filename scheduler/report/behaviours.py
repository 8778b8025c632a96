"""The regression layer of a gate: is each behaviour that was kept kept still? Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Literal

from scheduler.report.distributions import binomial_tail, fewer_passes
from scheduler.report.gate_format import BehaviourGate, Decision
from scheduler.report.permutation import holm
from scheduler.report.rates import rates
from scheduler.report.results import CellResults
from scheduler.report.sides import Pair
from scheduler.report.summary import Rates

RELIABLE = Fraction(9, 10)
"""A behaviour that is kept passes at least this share of attempts."""
LOST_LEVEL = 0.05
"""At most this is the chance that a gate calls any kept behaviour lost."""
DOUBT_LEVEL = 0.2
"""So few passes that a kept behaviour shows them less often than this leave the gate undecided."""


def was_kept(passes: int, valid: int) -> bool:
    """Whether a baseline shows a behaviour as kept."""
    return valid > 0 and Fraction(passes, valid) >= RELIABLE


def chance_if_kept(passes: int, attempts: int) -> float:
    """The largest chance of so few passes of a behaviour that is kept."""
    return binomial_tail(passes, attempts, float(RELIABLE))


def behaviours(pairs: Sequence[Pair], gate: float) -> Iterator[BehaviourGate]:
    """Lost, if so few passes are unlikely both for any kept behaviour and after this baseline.

    The first is Holm-adjusted over all behaviours that the baseline keeps. The second keeps a
    behaviour that was never reliable, and passed its few attempts by luck, from being called lost.
    A behaviour that the baseline does not keep cannot be lost, but it can fall further: by
    Fisher's test, Holm-adjusted over those.

    Args:
        pairs: the conditions, the baseline's first.
        gate: the coverage below which a behaviour is not judged.
    """
    listed = [
        (pair, before, after) for pair in pairs for before, after in pair.of_layer("regression")
    ]
    kept = [was_kept(*_valid(rates(before.attempts))) for _, before, _ in listed]
    fisher = [
        fewer_passes(*_best(rates(after.attempts)), *_valid(rates(before.attempts)))
        for _, before, after in listed
    ]
    lost = iter(
        holm(
            chance_if_kept(*_best(rates(after.attempts)))
            for (_, _, after), was in zip(listed, kept, strict=True)
            if was
        )
    )
    fell = iter(holm(p for p, was in zip(fisher, kept, strict=True) if not was))
    for (pair, before, after), was, p in zip(listed, kept, fisher, strict=True):
        if was:
            yield _kept(pair, before, after, next(lost), p, gate)
        else:
            yield _not_kept(pair, before, after, next(fell))
    for pair in pairs:
        for before, after in pair.changed:
            if before.layer == "regression":
                reason = "another folder or other verifiers: run the baseline again"
                yield _other(pair, before, after, "changed", reason)
        for before in pair.only_a:
            if before.layer == "regression" and was_kept(*_valid(rates(before.attempts))):
                yield _other(pair, before, None, "absent", "the sweep does not run it")
        for after in pair.only_b:
            if after.layer == "regression":
                yield _other(pair, None, after, "new", "the baseline does not run it")


def _not_kept(pair: Pair, before: CellResults, after: CellResults, p_fell: float) -> BehaviourGate:
    was, now = rates(before.attempts), rates(after.attempts)
    if p_fell <= LOST_LEVEL:
        reason = (
            f"{now.passed}/{now.planned}, baseline {was.passed}/{was.planned}: never kept, but "
            f"passes more rarely than it did, with p ≤ {p_fell:.2g}"
        )
        return _other(pair, before, after, "fell", reason)
    reason = f"passed {was.passed} of {was.passed + was.failed} in the baseline"
    return _other(pair, before, after, "not_kept_before", reason)


def _kept(
    pair: Pair,
    before: CellResults,
    after: CellResults,
    p_lost: float,
    p_fisher: float,
    gate: float,
) -> BehaviourGate:
    was, now = rates(before.attempts), rates(after.attempts)
    counts = f"{now.passed}/{now.planned}, baseline {was.passed}/{was.planned}"
    status: Literal["kept", "lost", "doubtful"] = "kept"
    decision, reason = Decision.PASS, ""
    if p_lost <= LOST_LEVEL and p_fisher <= LOST_LEVEL:
        status, decision = "lost", Decision.REGRESSION
        reason = f"{counts}: a kept behaviour does this with p ≤ {p_lost:.2g}"
    elif now.coverage < gate:
        status, decision = "doubtful", Decision.INCONCLUSIVE
        reason = f"{counts}: coverage {now.coverage:.1%} is below the gate {gate:.1%}"
    elif chance_if_kept(now.passed, now.planned) <= DOUBT_LEVEL:
        status, decision = "doubtful", Decision.INCONCLUSIVE
        reason = f"{counts}: too few passes to call it kept, too few attempts to call it lost"
    return BehaviourGate(
        task=after.task,
        condition=pair.name_b,
        status=status,
        decision=decision,
        baseline=was,
        now=now,
        p_lost=p_lost,
        p_fisher=p_fisher,
        reason=reason,
    )


def _other(
    pair: Pair,
    before: CellResults | None,
    after: CellResults | None,
    status: Literal["fell", "changed", "absent", "not_kept_before", "new"],
    reason: str,
) -> BehaviourGate:
    cell = after or before
    assert cell is not None  # one of the two is there
    return BehaviourGate(
        task=cell.task,
        condition=pair.name_b,
        status=status,
        decision=Decision.INCONCLUSIVE if status in ("fell", "changed", "absent") else None,
        baseline=None if before is None else rates(before.attempts),
        now=None if after is None else rates(after.attempts),
        p_lost=None,
        p_fisher=None,
        reason=reason,
    )


def _best(now: Rates) -> tuple[int, int]:
    """Passes and attempts, with every missing one passed."""
    return now.planned - now.failed, now.planned


def _valid(was: Rates) -> tuple[int, int]:
    return was.passed, was.passed + was.failed
