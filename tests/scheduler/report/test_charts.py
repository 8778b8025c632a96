from __future__ import annotations

from scheduler.report.charts import HEIGHT, WIDTH, cost_points, curves, failure_bars
from scheduler.report.score import score
from tests.scheduler.report.builders import cell, results

SPENT = {"usage": {"calls": 1, "cost_usd": 0.5}}


def test_a_curve_goes_from_one_attempt_to_all() -> None:
    made = score(results(cell("p f p f"), cell("p p p p", task="farewell")))
    [curve], most = curves(made)
    assert most == 4
    at, every = (
        [tuple(map(float, point.split(","))) for point in line.split()]
        for line in (curve.at, curve.all)
    )
    assert [x for x, _ in at] == [0.0, 200.0, 400.0, float(WIDTH)]
    assert at[0] == every[0] == (0.0, HEIGHT * 0.25)
    assert at[-1] == (WIDTH, 0.0)
    assert every[-1] == (WIDTH, HEIGHT * 0.5)


def test_single_attempts_and_withheld_headlines_have_no_curve() -> None:
    assert curves(score(results(cell("p")))) == ((), 0)
    assert curves(score(results(cell("p iii"))))[0] == ()


def test_bars_are_to_one_scale_and_grouped_by_blame() -> None:
    made = score(results(cell("f f iip", condition="a"), cell("rf", condition="b")))
    first, second = failure_bars(made)
    assert (first.condition, first.tries, second.tries) == ("a", 4, 2)
    told = [(each.blame, each.cause, each.tries, each.x, each.width) for each in first.slices]
    assert told == [
        ("harness", "container_lost", 2, 0.0, WIDTH / 2),
        ("model", "wrong", 2, WIDTH / 2, WIDTH / 2),
    ]
    assert sum(each.width for each in second.slices) == WIDTH / 2


def test_a_sweep_without_failures_has_empty_bars() -> None:
    [bar] = failure_bars(score(results(cell("p p"))))
    assert (bar.tries, bar.slices) == (0, ())


def test_cost_counts_every_try() -> None:
    made = score(results(cell("ip f", **SPENT)))
    [point], most = cost_points(made)
    assert point.cost_usd == 0.75
    assert point.x == round(WIDTH / 1.1, 1)
    assert most == 0.75 * 1.1
    assert point.y == HEIGHT * 0.5
    assert point.y_high <= point.y <= point.y_low


def test_without_a_known_cost_there_is_no_picture() -> None:
    assert cost_points(score(results(cell("p f")))) == ((), 0.0)
    assert cost_points(score(results(cell("p iii", **SPENT))))[0] == ()
