from __future__ import annotations

import io

from rich.console import Console

from scheduler.report.score import score
from scheduler.report.tables import MAX_CAUSES, closing_tables
from tests.scheduler.report.builders import cell, results


def shown(*cells, **options) -> str:  # type: ignore[no-untyped-def]
    stream = io.StringIO()
    Console(file=stream, width=140).print(closing_tables(score(results(*cells, **options))))
    return "\n".join(line.rstrip() for line in stream.getvalue().splitlines())


def row(text: str, start: str) -> list[str]:
    """The words of the first line that begins so."""
    return next(line for line in text.splitlines() if line.startswith(start)).split()


def test_regression_is_a_row_per_behaviour_with_the_dimensions_that_were_lost() -> None:
    text = shown(
        cell("p p", layer="regression", task="threads"),
        cell(
            "f f", layer="regression", task="threads", condition="sloppy", dimensions={"dim": 0.0}
        ),
        cell("p iii", layer="regression", task="mentions"),
    )
    assert row(text, "threads") == ["threads", "✓", "2/2", "✗", "0/2"]
    assert row(text, "mentions") == ["mentions", "?", "1/2,", "1", "invalid", "-"]
    assert "dim" in text
    assert "Workflow" not in text


def test_open_attempts_stand_beside_the_invalid_ones_where_there_are_some() -> None:
    text = shown(cell("p iii - c", layer="regression"))
    assert row(text, "greet") == ["greet", "?", "1/4,", "1", "invalid,", "2", "open"]
    assert row(text, "condition")[:6] == [
        "condition",
        "planned",
        "passed",
        "failed",
        "invalid",
        "open",
    ]
    assert "open" not in shown(cell("p iii", layer="regression"))


def test_workflow_has_rate_interval_bounds_and_pass_at_k() -> None:
    text = shown(cell("p p f", task="a"), cell("p f f", task="b"))
    assert "Regression" not in text
    line = next(each for each in text.splitlines() if each.startswith("solver"))
    assert "50.0%" in line
    assert "50.0% … 50.0%" in line
    assert "@3 100.0% (2 tasks)" in line
    assert "^3 0.0%" in line


def test_below_the_gate_no_rate_is_shown_only_bounds() -> None:
    text = shown(cell("p p iii iii", task="a"))
    line = next(each for each in text.splitlines() if each.startswith("solver"))
    assert "withheld" in line
    assert "50.0% … 100.0%" in line
    assert "@" not in line
    assert "! solver: no headline, only bounds: coverage 50.0% is below the gate 90.0%" in text


def test_below_the_gate_no_mean_reward_is_shown() -> None:
    text = shown(
        cell("p f iii", condition="short", task="a", reward=0.25),
        cell("p f f", condition="whole", task="a", reward=0.375),
    )
    assert "0.375" in text
    assert "0.250" not in text


def test_what_was_not_a_pass_is_told_with_an_example() -> None:
    text = shown(cell("ip f", task="a"))
    assert "harness" in text
    assert "container_lost" in text
    assert row(text, "model")[:4] == ["model", "wrong", "solver", "a"]


def test_a_long_table_of_causes_is_cut_and_says_so() -> None:
    text = shown(*(cell("f", task=f"t{number}") for number in range(MAX_CAUSES + 5)))
    assert "5 more rows in the report" in text


def test_many_conditions_stand_under_one_another() -> None:
    text = shown(*(cell("p", condition=f"c{n}", layer="regression") for n in range(9)))
    assert row(text, "greet") == ["greet", "c0", "✓", "1/1"]


def test_an_unknown_cost_makes_the_sum_a_lower_bound() -> None:
    usage = {"calls": 1, "cost_usd": 0.5, "unknown_cost_calls": 1}
    assert "≥ $0.5000" in shown(cell("p", usage=usage))


def test_the_cost_stands_with_and_without_the_cache() -> None:
    usage = {"calls": 1, "cost_usd": 0.25, "uncached_cost_usd": 0.75}
    text = shown(cell("p p", usage=usage))
    assert row(text[text.index("Attempts") :], "solver")[-2:] == ["$0.5000", "$1.5000"]
