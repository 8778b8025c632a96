from __future__ import annotations

import re
from datetime import timedelta

import pytest

from scheduler.series.page import render
from scheduler.series.records import written
from scheduler.series.trend_format import (
    Break,
    Judgement,
    LineTest,
    Surroundings,
    TrendCell,
    TrendCondition,
    TrendRecord,
)
from scheduler.series.trend_view import lines_of, sparkline
from tests.scheduler.series.builders import utc

START = utc(2026, 6, 1)


def line(
    number: int,
    passed: int,
    outcome: str = "pass",
    *,
    breaks: tuple[Break, ...] = (),
    fallen: bool = False,
    task: str = "buzz-native/greet",
) -> TrendRecord:
    due = START + timedelta(days=number)
    cell = TrendCell(
        task=task,
        task_digest="d" * 64,
        layer="regression",
        images=(),
        planned=4,
        passed=passed,
        failed=4 - passed,
        rate=passed / 4,
        interval=None,
        coverage=1.0,
        tries=4,
        cost_usd=0.25,
        mean_seconds=1.0,
    )
    condition = TrendCondition(
        condition="luna",
        digest="c" * 64,
        coverage=1.0,
        passed=passed,
        planned=4,
        workflow=None,
        interval=None,
        cost_usd=0.25,
        unknown_cost_calls=0,
        failures={},
        cells=(cell,),
    )
    test = LineTest(
        condition="luna",
        task=task,
        p=0.5,
        limit=1e-4,
        window=1,
        recent=(passed, 4),
        before=(4, 4),
        fallen_since="20260601T000000Z" if fallen else None,
        event="",
    )
    values = {
        "series": "nightly",
        "due": written(due),
        "zone": "UTC",
        "sweep": f"nightly-{due:%Y%m%dT%H%M%SZ}",
        "ended_at": written(due),
        "state": "settled",
        "rule": "strict",
        "coverage_gate": 0.9,
        "surroundings": Surroundings(apiary="1", agent="a:b", base_image=None, profile={}),
        "conditions": (condition,),
        "breaks": breaks,
        "judgement": Judgement.model_validate(
            {"outcome": outcome, "reasons": (), "tests": (test,)}
        ),
    }
    return TrendRecord.model_validate(values)


CHANGE = Break(what="Apiary version", name="", before="1", after="2")


def test_a_break_parts_the_line_and_an_outage_says_nothing() -> None:
    trend = [line(0, 4), line(1, 2), line(2, 0, "outage"), line(3, 4, breaks=(CHANGE,)), line(4, 1)]
    (only,) = lines_of(trend)
    assert sparkline(only) == "█▅·┊█▃"
    assert [len(each) for each in only.segments] == [3, 2]
    assert only.last is not None and only.last.rate == 0.25


def test_a_change_of_another_task_does_not_part_a_line() -> None:
    other = Break(what="task", name="buzz-native/other", before="1", after="2")
    own = Break(what="task", name="buzz-native/greet", before="1", after="2")
    assert sparkline(lines_of([line(0, 4), line(1, 4, breaks=(other,))])[0]) == "██"
    assert sparkline(lines_of([line(0, 4), line(1, 4, breaks=(own,))])[0]) == "█┊█"


def test_the_picture_has_every_run_and_break() -> None:
    trend = [
        line(0, 4),
        line(1, 2, fallen=True),
        line(2, 0, "outage"),
        line(3, 4, breaks=(CHANGE,)),
    ]
    page = render("nightly", trend)
    assert page.count('class="dot ok"') == 2 and page.count('class="dot fail"') == 1
    assert page.count('class="gap"') == 1 and page.count('class="break"') == 1
    assert len(re.findall(r"<polyline", page)) == 2
    assert "line broken: Apiary version: 1 → 2" in page


def test_one_run_alone_is_a_page_too() -> None:
    assert "1 run," in render("nightly", [line(0, 3)])


@pytest.mark.parametrize("name", ["<script>alert(1)</script>", "a\u202eb"])
def test_names_cannot_become_markup(name: str) -> None:
    page = render("nightly", [line(0, 4, task=name)])
    assert name not in page
