from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path

import pytest

import scheduler.report.page
from scheduler.report.page import render, report_keys, write_report
from scheduler.report.results import SweepResults
from scheduler.report.score import score
from scheduler.report.summary import Summary
from tests.scheduler.report.builders import cell, results
from workers.storage import open_store

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
    assert text.count("model: wrong") == 3
    assert "and 3 more passes or rows that are left out here" in text


def test_page_and_summary_are_written_over_those_of_an_earlier_moment(tmp_path: Path) -> None:
    store = open_store(f"file://{tmp_path}")
    for attempts in ("p -", "p p"):
        made = results(cell(attempts))
        where = write_report(store, made, score(made))
    html, document = report_keys(made.sweep)
    assert where == str(tmp_path / html)
    assert Path(where).read_text("utf-8").startswith("<!doctype html>")
    assert Summary.from_json(store.get(document), document).conclusive
