"""The logs of a real local Ray, flooded by a worker."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from scheduler.local_ray import LOG_BYTES, LOG_FILE_BYTES, LOG_FILES_KEPT, RayFolder

FLOOD = 8 * LOG_FILE_BYTES
SCRIPT = """
import sys, ray
ray.init(address="local", num_cpus=1, include_dashboard=False, log_to_driver=False,
         object_store_memory=80 * 1024 * 1024, _temp_dir=sys.argv[1])

@ray.remote
def flood():
    line = "x" * 999 + "\\n"
    for _ in range(int(sys.argv[2]) // 1000):
        sys.stdout.write(line)
    sys.stdout.flush()

ray.get(flood.remote())
ray.shutdown()
"""


@pytest.mark.ray
def test_the_log_of_a_worker_is_rotated_while_it_runs_and_kept_by_its_end(tmp_path: Path) -> None:
    folder = RayFolder(tmp_path / "ray")
    script = SCRIPT.replace("int(sys.argv[2])", str(FLOOD))
    try:
        subprocess.run(
            [sys.executable, "-c", script, str(folder.path)],
            env={**os.environ, **folder.environment},
            check=True,
            timeout=180,
        )
        logs = list(folder.path.glob("session_2*/logs/worker-*"))
        sizes = [log.stat().st_size for log in logs]
    finally:
        folder.remove()
    assert max(sizes) > LOG_FILE_BYTES // 2
    assert max(sizes) <= LOG_FILE_BYTES + 64 * 1024
    assert sum(sizes) <= (1 + LOG_FILES_KEPT) * LOG_FILE_BYTES + 1024 * 1024
    kept = [log.stat().st_size for log in (tmp_path / "ray").rglob("worker-*")]
    assert kept
    assert max(kept) <= LOG_BYTES
