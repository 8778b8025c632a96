from __future__ import annotations

import os
import secrets
import sys
from pathlib import Path

import pytest

from scheduler.bench.processes import BenchError, end_all, marked, start, wait_for

pytestmark = pytest.mark.long

SLEEP = "import time; time.sleep(600)"
FAMILY = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', '{SLEEP}']); {SLEEP}"


def test_what_bears_the_mark_is_found_and_ended_with_its_children(tmp_path: Path) -> None:
    mark = secrets.token_hex(8)
    process = start([sys.executable, "-c", FAMILY], os.environ, mark, tmp_path, tmp_path / "log")
    wait_for("both", lambda: len(marked(mark)) == 2, 30.0)
    assert process.pid in {each.pid for each in marked(mark)}
    assert marked(secrets.token_hex(8)) == []
    assert end_all(mark) == []
    process.wait(10.0)
    assert marked(mark) == []


def test_a_wait_that_does_not_come_true_says_for_what() -> None:
    with pytest.raises(BenchError, match=r"a miracle: not within 0\.1 s"):
        wait_for("a miracle", lambda: False, 0.1)
