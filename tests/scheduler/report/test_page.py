from __future__ import annotations

from dataclasses import replace
from html.parser import HTMLParser

import pytest

import scheduler.report.page
from scheduler.report.page import render
from scheduler.report.results import SweepResults
from scheduler.report.score import score
from tests.scheduler.report.builders import cell, results

VOID = {"meta", "line", "rect", "circle"}


class Checker(HTMLParser):
    """Collects text and attributes, and insists that every element is closed in order."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.links: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in VOID:
            self.open.append(tag)
        self.links += [value or "" for name, value in attrs if name in ("src", "href")]

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def page(made: SweepResults) -> Checker:
    checker = Checker()
    checker.feed(render(made, score(made)))
    checker.close()
    assert checker.open == []
    return checker


def test_it_is_one_file_that_needs_no_other() -> None:
    made = results(cell("p f iii -"), cell("p p", layer="regression", task="threads"))
    checker = page(made)
    assert checker.links == []
    for word in (
        "Regression",
        "Workflow",
        "threads",
        "container_lost",
        "withheld",
        "1 invalid",
        "1 open",
    ):
        assert word in checker.text


def test_below_the_gate_no_rate_is_shown_only_bounds() -> None:
    text = page(results(cell("p p p f iii iii"))).text
    assert "50.0% to 83.3%" in text
    assert "75.0%" not in text


def test_what_comes_from_a_run_is_escaped() -> None:
    evil = "<script>alert(1)</script>"
    made = results(
        cell(
            "f", condition=evil, task=evil, dimensions={evil: 0.0}, detail=evil, layer="regression"
        )
    )
    source = render(made, score(made))
    assert "<script" not in source
    assert "&lt;script&gt;" in source


def test_a_sweep_without_any_try_has_a_page() -> None:
    assert "2 of 2 attempts have not been tried yet" in page(results(cell("- -"))).text


def test_open_attempts_have_a_column_only_where_there_are_some() -> None:
    for attempts, shown in (("p c", True), ("p iii", False)):
        made = results(cell(attempts))
        assert ('<th class="n">open</th>' in render(made, score(made))) is shown


def test_many_attempts_are_cut_and_the_passes_go_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scheduler.report.page, "MAX_ATTEMPTS", 50)
    made = results(cell(" ".join(["p"] * 50 + ["f"] * 3)))
    text = page(made).text
    assert text.partition("Every attempt")[2].count("model: wrong") == 3
    assert "and 3 more passes or rows that are left out here" in text


def test_the_cost_stands_with_and_without_the_cache() -> None:
    usage = {"calls": 1, "cost_usd": 0.25, "uncached_cost_usd": 0.75, "unknown_cost_calls": 1}
    text = page(results(cell("p p", usage=usage))).text
    assert "≥ $0.5000" in text
    assert "≥ $1.5000" in text


def test_superseded_cells_stand_apart_under_their_digests_and_count_nowhere() -> None:
    now, old = cell("p p"), cell("f f iii", task="greet")
    old = replace(old, task_digest="0ld" + "d" * 61)
    untried = replace(cell("- -", task="gone"), task_digest="never")
    text = page(replace(results(now), superseded=(old, untried))).text
    assert "Superseded: results under old digests" in text
    assert "0ldddddddddd" in text
    assert "2 of 2 attempts have a verdict" in text
    assert "gone" not in text
    assert "Superseded" not in page(results(now)).text
