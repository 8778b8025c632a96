"""A minute of chaos through the command line, and what is there afterwards: nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.base_image import base_image
from tests.layout.tree import ROOT

WITHIN_S = 900.0
"""The bench ends by its own deadline before."""


@pytest.mark.alone
@pytest.mark.docker
@pytest.mark.ray
def test_a_minute_of_chaos_loses_and_leaves_nothing() -> None:
    before = set(Path("/tmp").glob("ab-*"))
    environment = {**os.environ, "APIARY_BASE_IMAGE": base_image()}
    done = subprocess.run(
        [
            *(sys.executable, "-m", "scheduler", "bench", "chaos", "--json"),
            *("--minutes", "1", "--seed", "7", "--attempts", "60"),
        ],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=WITHIN_S,
    )
    assert done.returncode == 0, done.stderr
    figures = {row["name"]: row["value"] for row in map(json.loads, done.stdout.splitlines())}
    assert figures["planned"] == figures["committed"] == 60
    zero = ("counted twice", "lost", "left over", "misjudged", "bugs")
    assert {figures[name] for name in zero} == {0}
    assert figures["faults"] >= 3
    assert set(Path("/tmp").glob("ab-*")) <= before
