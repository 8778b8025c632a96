"""The page on series says what the code does."""

from __future__ import annotations

import re

import pytest
from pydantic import BaseModel

from scheduler.manifest.check import check
from scheduler.manifest.model_fields import fields_at
from scheduler.manifest.yaml_marks import read_yaml
from scheduler.series.notify import DELIVERY, SIGNATURE
from scheduler.series.schedule_file import ScheduleFile
from scheduler.series.sequential import MOST_BEFORE, RECOVERED_P, WINDOWS, WINDOWS_WORTH
from tests.layout.tree import ROOT

PAGE = (ROOT / "docs" / "series.md").read_text("utf-8")
PAGES = ["series.md", "weekly-benchmark.md", "continuous-integration.md"]


def test_the_example_is_sound() -> None:
    (block,) = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    file = check(ScheduleFile, read_yaml(block, "series.md"))
    assert (file.series, file.jitter) == ("nightly-regression", "10m")


@pytest.mark.parametrize("place", [(), ("gate",), ("notify",), ("retention",)])
def test_every_field_is_named(place: tuple[str, ...]) -> None:
    model: type[BaseModel] = ScheduleFile
    assert [name for name in fields_at(model, place) if name not in PAGE] == []


def test_the_figures_of_the_test_are_those_of_the_code() -> None:
    assert "last " + ", ".join(map(str, WINDOWS[:-1])) + f" and {WINDOWS[-1]} runs" in PAGE
    assert f"up to {MOST_BEFORE} before them" in PAGE
    assert f"runs a year × lines × {WINDOWS_WORTH:g}" in PAGE
    assert f"(p > {RECOVERED_P:g})" in PAGE
    assert DELIVERY in PAGE and SIGNATURE in PAGE


@pytest.mark.parametrize("name", PAGES)
def test_links_lead_somewhere(name: str) -> None:
    text = (ROOT / "docs" / name).read_text("utf-8")
    for target in re.findall(r"\]\(([^)#]+)", text):
        assert target.startswith("https://") or (ROOT / "docs" / target).exists(), target
    for place in re.findall(r"\b((?:manifests|deploy)/[\w./-]+\.(?:yaml|sh))", text):
        assert (ROOT / place).is_file(), place
