"""A small run of each bench that runs trials; what is asserted is its shape, and wide ratios."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

from tests.base_image import base_image
from tests.layout.tree import ROOT

pytestmark = [pytest.mark.docker, pytest.mark.ray, pytest.mark.alone]

WITHIN_S = 900.0
PARALLEL = 4


def bench(*arguments: str) -> list[dict[str, Any]]:
    """The figures that a bench prints; nothing of it is left."""
    before = set(Path("/tmp").glob("ab-*"))
    done = subprocess.run(
        [sys.executable, "-m", "scheduler", "bench", *arguments, "--json", "--rounds", "1"],
        cwd=ROOT,
        env={**os.environ, "APIARY_BASE_IMAGE": base_image()},
        capture_output=True,
        text=True,
        timeout=WITHIN_S,
    )
    assert done.returncode == 0, done.stderr
    assert set(Path("/tmp").glob("ab-*")) <= before
    left = subprocess.run(
        ["docker", "ps", "--all", "--quiet", "--filter", "label=apiary.bench"],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert left.stdout == ""
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_harbor_trials_keep_up_with_the_bare_loop() -> None:
    figures = bench("docker", "--attempts", "8", "--n-concurrent", str(PARALLEL))
    by_name = {each["name"]: each for each in figures}
    rate = by_name[f"throughput at {PARALLEL}"]
    assert "bare loop" in rate["against"]
    assert rate["ratio"] == pytest.approx(rate["value"] / rate["reference"])
    # 1.1 on an idle machine; most of it is Docker's own work on both sides.
    assert rate["ratio"] > 0.2
    assert by_name["command"]["value"] > by_name["first lease"]["value"] > 0


def test_buzz_trials_are_taken_apart_by_phase(tmp_path: Path) -> None:
    picture = tmp_path / "phases.svg"
    arguments = ("--attempts", "4", "--n-concurrent", str(PARALLEL), "--picture", str(picture))
    figures = bench("trial", *arguments)
    by_name = {each["name"]: each for each in figures}
    assert len(by_name) == len(figures)
    for how in ("alone", f"{PARALLEL} at once"):
        phases = [each["value"] for name, each in by_name.items()
                  if name.startswith("phase ") and name.endswith(f", {how}")]  # fmt: skip
        assert len(phases) == 8
        assert 0.5 < sum(phases) / by_name[f"trial, {how}"]["value"] < 1.5
        assert 0 < by_name[f"outside agent and verifier, {how}"]["ratio"] < 1
        assert by_name[f"throughput, {how}"]["ratio"] > 0.05
        assert by_name[f"throughput by its own calls, {how}"]["ratio"] > 0.05
    assert by_name["first lease"]["n"] == 2
    # It is to load next to nothing; Ray alone takes some thirty times as long as an interpreter.
    assert by_name["apiary --help"]["ratio"] < 15
    assert ET.parse(picture).getroot().tag.endswith("svg")
