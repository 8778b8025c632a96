"""What the store costs: objects of an attempt's size by our doors, and by bare means, by turns.

A file store promises that an object is on disk when a call returns, and so do the bare writes
beside it. The S3 server is one of this machine; the bare client is boto3's own.
"""

from __future__ import annotations

import secrets
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from scheduler.bench import store_turns
from scheduler.bench.figure import Figure
from scheduler.bench.processes import BenchError
from scheduler.bench.servers import BucketServer
from scheduler.bench.store_turns import Task
from scheduler.bench.surroundings import bench_environment, bucket_credentials
from scheduler.settings import Settings

WITHIN_S = 1800.0

Say = Callable[[str], None]


def measure_store(settings: Settings, task: Task, say: Say) -> list[Figure]:
    """Both kinds of stores; a process has the credentials of the one of this machine.

    Args:
        settings: of the command that measures.
        task: how much; its store is not used.
        say: hears what is done.

    Raises:
        BenchError: a server or the process failed.
    """
    folder = Path(tempfile.mkdtemp(prefix="apiary-bench-"))
    environment = {**bench_environment(folder, settings), **bucket_credentials()}
    server = BucketServer(folder / "bucket", environment, secrets.token_hex(8))
    try:
        say("files")
        figures = _measured(task, (folder / "store").as_uri(), environment)
        say("S3")
        server.up()
        return figures + _measured(task, server.url, environment)
    finally:
        server.kill()
        shutil.rmtree(folder, ignore_errors=True)


def _measured(task: Task, store: str, environment: dict[str, str]) -> list[Figure]:
    asked = task.model_copy(update={"store": store})
    ran = subprocess.run(
        [sys.executable, "-m", store_turns.__name__, asked.to_json()],
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=WITHIN_S,
    )
    if ran.returncode:
        raise BenchError(f"measuring {store} failed: {ran.stderr[-2000:]}")
    return [Figure.from_json(line, "figure") for line in ran.stdout.splitlines()]
