from __future__ import annotations

import math
import re
from pathlib import Path

import pytest

from scheduler.report.behaviours import chance_if_kept, was_kept
from scheduler.report.distributions import fewer_passes
from scheduler.report.gate import attempts_needed, decide, tasks_needed
from scheduler.report.gate_format import Decision, Gate
from scheduler.report.intervals import fixed, paired
from scheduler.report.sides import NotComparableError
from tests.scheduler.report.generated import make_lock
from tests.scheduler.report.sides import NOW_START, arranged, side


def regression(before: str, now: str, others: int = 0) -> Gate:
    """One behaviour among others that are kept."""
    kept = {f"kept-{number}": "p p p" for number in range(others)}
    return decide(
        side({"it": now, **kept}, started_at=NOW_START), side({"it": before, **kept}), 0.05
    )


def workflow(before: str, now: str, tasks: int = 1, margin: float = 0.05, **options: str) -> Gate:
    """Tasks that all have these attempts."""
    sides = [{f"task-{n}": word for n in range(tasks)} for word in (now, before)]
    return decide(
        side(workflow=sides[0], started_at=NOW_START),
        side(workflow=sides[1]),
        margin,
        **options,  # type: ignore[arg-type]
    )


@pytest.mark.parametrize(
    ("before", "now", "status", "decision"),
    [
        ("p p p", "p p p", "kept", Decision.PASS),
        ("p p p", "f f f", "lost", Decision.REGRESSION),
        ("p p p p p", "p f f f f", "lost", Decision.REGRESSION),
        ("p p p p p", "p p p p f", "kept", Decision.PASS),
        ("p p p p p", "p p p f f", "doubtful", Decision.INCONCLUSIVE),
        ("p", "f", "doubtful", Decision.INCONCLUSIVE),
        ("p", "f f f", "doubtful", Decision.INCONCLUSIVE),
        ("p p p", "p f f", "doubtful", Decision.INCONCLUSIVE),
        ("f f f", "f f f", "not_kept_before", None),
        ("p f f", "p p p", "not_kept_before", None),
        ("p p p p f f", "f f f f f f", "fell", Decision.INCONCLUSIVE),
    ],
)
def test_one_behaviour(before: str, now: str, status: str, decision: Decision | None) -> None:
    found = regression(before, now).behaviours[0]
    assert (found.status, found.decision) == (status, decision)


def test_a_loss_among_many_behaviours_must_be_surer() -> None:
    assert regression("p p p", "f f f", others=9).decision is Decision.REGRESSION
    # 0 of 3 has a chance of 0.1 % if it is kept: of 60 behaviours that is not rare enough.
    assert regression("p p p", "f f f", others=59).decision is Decision.INCONCLUSIVE


@pytest.mark.parametrize(
    ("now", "decision"),
    [
        ("f f f f iii", Decision.REGRESSION),
        ("f f iii iii iii", Decision.INCONCLUSIVE),
        ("p p p p iii", Decision.INCONCLUSIVE),
        ("p p p p -", Decision.INCONCLUSIVE),
        ("iii iii iii iii iii", Decision.INCONCLUSIVE),
    ],
)
def test_what_is_missing_helps_neither_way(now: str, decision: Decision) -> None:
    assert regression("p p p p p", now).decision is decision


def test_behaviours_that_changed_or_are_gone_leave_it_undecided() -> None:
    before = side({"a": "p p p", "b": "p p p", "c": "p p p"})
    now = side({"a": "p p p", "b": "p p p", "d": "f f f"}, started_at=NOW_START, changed=("b",))
    found = decide(now, before, 0.05)
    assert found.decision is Decision.INCONCLUSIVE
    status = {each.task.rpartition("/")[2]: each.status for each in found.behaviours}
    assert status == {"a": "kept", "b": "changed", "c": "absent", "d": "new"}


ALL, HALF, NONE = " ".join(["p"] * 20), " ".join(["p", "f"] * 10), " ".join(["f"] * 20)


@pytest.mark.parametrize(
    ("before", "now", "tasks", "decision"),
    [
        (ALL, ALL, 4, Decision.PASS),
        (ALL, ALL, 3, Decision.INCONCLUSIVE),
        (ALL, HALF, 3, Decision.REGRESSION),
        (HALF, ALL, 1, Decision.PASS),
        (NONE, NONE, 4, Decision.PASS),
        (HALF, HALF, 4, Decision.INCONCLUSIVE),
    ],
)
def test_the_interval_against_the_margin(
    before: str, now: str, tasks: int, decision: Decision
) -> None:
    found = workflow(before, now, tasks)
    assert found.decision is decision
    assert found.workflow[0].decision is decision


def test_missing_attempts_help_neither_side_of_the_margin() -> None:
    full, holes = " ".join(["p"] * 40), " ".join(["p"] * 38 + ["iii"] * 2)
    assert workflow(full, full, 4).decision is Decision.PASS
    # What the baseline lacks counts as passed, and was not below all passes anyway.
    assert workflow(holes, full, 4).decision is Decision.PASS
    # Two of 40 that the sweep lost might have been a loss of 5 points.
    found = workflow(full, holes, 4)
    assert found.decision is Decision.INCONCLUSIVE
    interval = found.workflow[0].interval
    assert interval is not None
    assert interval.low < -0.05
    # And they might have been none: a fall that only they make is no regression.
    half = " ".join(["p"] * 5 + ["f"] * 5)
    lost = " ".join(["p"] * 4 + ["f"] * 5 + ["iii"])
    found = workflow(half, lost, 40)
    assert found.workflow[0].pair.difference == pytest.approx(-0.1)
    assert found.decision is Decision.INCONCLUSIVE


def test_such_tasks_ask_for_more_tasks_than_these() -> None:
    for tasks, decision in ((4, Decision.INCONCLUSIVE), (38, Decision.PASS)):
        found = workflow("p", "p", tasks, scope="such-tasks")
        assert found.decision is decision
    assert "takes 38 tasks or more" in workflow("p", "p", 4, scope="such-tasks").reasons[0]
    assert "takes 73 attempts a side or more" in workflow("p", "p").reasons[0]


@pytest.mark.parametrize("margin", [0.001, 0.01, 0.05, 0.2])
def test_what_a_margin_needs_is_the_least_that_holds_it(margin: float) -> None:
    attempts, tasks = attempts_needed(margin), tasks_needed(margin)
    assert -fixed([(attempts, attempts)], [(attempts, attempts)]).low < margin
    assert -fixed([(attempts - 1, attempts - 1)], [(attempts - 1, attempts - 1)]).low >= margin
    assert -paired([0.0] * tasks).low < margin <= -paired([0.0] * (tasks - 1)).low


@pytest.mark.parametrize("margin", [1e-9, 0.7, 0.9])
def test_the_least_is_known_of_any_margin(margin: float) -> None:
    assert -paired([0.0] * tasks_needed(0.9)).low < 0.9
    assert tasks_needed(margin) >= 1
    assert attempts_needed(margin) >= 1


def test_below_the_coverage_gate_nothing_is_decided() -> None:
    for before, now in (("p p p p iii", ALL), (ALL, "p p p p iii")):
        found = workflow(before, now, 5)
        assert found.decision is Decision.INCONCLUSIVE
        assert found.workflow[0].interval is None
        assert found.workflow[0].pair.difference is None
        assert "coverage" in found.reasons[0]


def test_the_worst_layer_decides_and_its_reason_comes_first() -> None:
    now = side({"kept": "f f f"}, {"a": "p"}, started_at=NOW_START)
    found = decide(now, side({"kept": "p p p"}, {"a": "p"}), 0.05)
    assert found.decision is Decision.REGRESSION
    assert "lost" in found.reasons[0]
    assert "attempts a side" in found.reasons[1]


def test_open_attempts_leave_it_undecided() -> None:
    found = regression("p p p p p p p p p p p", "p p p p p p p p p p p", 0)
    assert found.decision is Decision.PASS
    found = regression("p p p p p p p p p p p", "p p p p p p p p p p c", 0)
    assert found.decision is Decision.INCONCLUSIVE
    assert "not settled: 1 attempt open" in found.reasons[0]


def test_nothing_to_hold_it_against_is_no_pass() -> None:
    found = regression("f f", "p p")
    assert found.decision is Decision.INCONCLUSIVE
    assert "nothing to hold it against" in found.reasons[0]


def test_a_newer_baseline_and_a_sweep_against_itself_are_refused() -> None:
    old, new = side({"a": "p"}), side({"a": "p"}, started_at=NOW_START)
    with pytest.raises(NotComparableError, match="started later"):
        decide(old, new, 0.05)
    with pytest.raises(NotComparableError, match="its own baseline"):
        decide(new, new, 0.05)


def test_one_condition_against_another_of_the_same_sweep() -> None:
    one = arranged(
        make_lock(conditions=2, regression=1, workflow=0, attempts=3), {"task-00": "p p p"}
    )
    assert decide(one, one, 0.05, "condition-1", "condition-0").decision is Decision.PASS


def test_the_false_alarms_stay_below_what_is_promised() -> None:
    """Exactly: twelve behaviours that are kept in nine of ten attempts, five attempts each."""
    lost = [x for x in range(6) if chance_if_kept(x, 5) <= 0.05 / 12]
    alone = chance_if_kept(max(lost), 5)
    assert 1 - (1 - alone) ** 12 <= 0.05
    assert was_kept(9, 10)
    assert not was_kept(8, 9)
    assert not was_kept(0, 0)


def test_a_gate_survives_its_json() -> None:
    found = regression("p p p", "f f f")
    assert Gate.from_json(found.to_json(), "gate") == found


DOCUMENT = Path(__file__).resolve().parents[3] / "docs" / "statistics.md"
ODDS = re.compile(r"^\| (\d+) \| ([\d.]+) \| ([\d.]+) \| ([\d.]+)% \| ([\d.]+)% \|$", re.MULTILINE)


def odds_of_lost(attempts: int, before: float, now: float, behaviours: int) -> float:
    """The exact chance that one behaviour is called lost, if all others are as they were."""

    def chance(x: int, rate: float) -> float:
        return math.comb(attempts, x) * rate**x * (1 - rate) ** (attempts - x)

    return math.fsum(
        chance(was, before) * chance(x, now)
        for was in range(attempts + 1)
        for x in range(attempts + 1)
        if was_kept(was, attempts)
        and behaviours * chance_if_kept(x, attempts) <= 0.05
        and fewer_passes(x, attempts, was, attempts) <= 0.05
    )


def test_the_documented_odds_of_a_gate_are_exact() -> None:
    rows = ODDS.findall(DOCUMENT.read_text("utf-8"))
    assert len(rows) >= 10
    for attempts, before, now, one, any_of_twelve in rows:
        odds = odds_of_lost(int(attempts), float(before), float(now), 12)
        assert 100 * odds == pytest.approx(float(one), abs=0.06)
        if before == now:
            assert 100 * (1 - (1 - odds) ** 12) == pytest.approx(float(any_of_twelve), abs=0.06)


@pytest.mark.parametrize("attempts", [1, 2, 3, 5, 10, 20])
@pytest.mark.parametrize("rate", [0.9, 0.93, 0.97, 0.99])
def test_kept_behaviours_are_rarely_called_lost(attempts: int, rate: float) -> None:
    assert 1 - (1 - odds_of_lost(attempts, rate, rate, 12)) ** 12 <= 0.05
