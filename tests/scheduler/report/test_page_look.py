"""The report as a person sees it: on paper, on a telephone, and how heavy it is."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from scheduler.report.collect import collect
from scheduler.report.comparison import compare
from scheduler.report.page import report_keys, write_report
from scheduler.report.score import score
from scheduler.report.sides import read_side
from scheduler.report.summary import Summary
from tests.browser import TEXT_OUTSIDE, TEXT_OVERLAPPING, chromium
from tests.scheduler.report.stores import START, large_store

pytestmark = pytest.mark.long

MOST_BYTES = 2 * 1024 * 1024
SIZES = {"A4": {"width": 794, "height": 1123}, "telephone": {"width": 360, "height": 800}}


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of 1,000 attempts, compared with a shorter sweep of the day before."""
    folder = tmp_path_factory.mktemp("store")
    store, plan = large_store(folder, 20)
    _, before = large_store(folder, 3, started_at=START.replace(year=2025))
    results = collect(store, plan.sweep)
    summary = score(results)
    comparison = compare(read_side(store, before.sweep), read_side(store, plan.sweep))
    where = write_report(store, results, summary, comparison)
    _, document = report_keys(plan.sweep)
    assert Summary.from_json(store.get(document), document) == summary
    return Path(where)


def test_a_thousand_attempts_stay_small(page: Path) -> None:
    assert page.stat().st_size <= MOST_BYTES


@pytest.mark.parametrize("size", SIZES)
def test_nothing_is_clipped_or_overlaps(page: Path, browser: Browser, size: str) -> None:
    context = browser.new_context(viewport=SIZES[size])  # type: ignore[arg-type]  # a typed dict
    faults: list[str] = []
    shown = context.new_page()
    shown.on("console", lambda said: faults.append(said.text))
    shown.goto(page.as_uri())
    for details in shown.locator("details summary").all():
        if details.evaluate("e => !e.parentElement.open"):
            details.click()
    assert shown.evaluate("document.documentElement.scrollWidth") <= SIZES[size]["width"]
    assert shown.evaluate(TEXT_OUTSIDE) == []
    assert shown.evaluate(TEXT_OVERLAPPING) == []
    assert faults == []
    context.close()


def test_on_paper_no_table_is_cut(page: Path, browser: Browser) -> None:
    shown = browser.new_page(viewport=SIZES["A4"])  # type: ignore[arg-type]  # a typed dict
    shown.emulate_media(media="print")
    shown.goto(page.as_uri())
    cut = """() => [...document.querySelectorAll('.scroll')]
      .filter(e => e.scrollWidth > e.clientWidth + 1).map(e => e.textContent.trim().slice(0, 60))"""
    assert shown.evaluate(cut) == []
    assert shown.evaluate(TEXT_OVERLAPPING) == []


def test_what_a_reader_looks_for_is_there(page: Path) -> None:
    source = page.read_text("utf-8")
    for heading in (
        "Regression: is each behaviour kept?",
        "Workflow: pass rate",
        "Against large-k-20250101T000000Z",
        "Attempts and cost",
        "What was not a pass",
        "Where the time went",
        "When each try ran",
        "To reproduce it",
        "Every attempt",
    ):
        assert f"<h2>{heading}</h2>" in source, heading
    assert "src=" not in source
    assert "href=" not in source
    assert "<script" not in source
