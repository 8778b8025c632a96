from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from scheduler.cli import run_cli
from scheduler.cli.exits import Exit

pytestmark = pytest.mark.long

ROOT = Path(__file__).resolve().parents[3]


def test_it_serves_until_it_is_interrupted() -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "scheduler", "model", "serve", "--json"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        told = json.loads(process.stdout.readline())
        assert "scripted-solver" in told["models"]
        with urllib.request.urlopen(f"{told['base_url']}/models", timeout=30) as answer:
            assert [row["id"] for row in json.load(answer)["data"]] == told["models"]
        os.kill(process.pid, signal.SIGINT)
        assert process.wait(timeout=30) == Exit.DONE


def test_a_port_that_is_taken_is_said_to_be(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert run_cli(["model", "serve", "--port", str(port)]) == Exit.USAGE
    assert f"cannot listen on 127.0.0.1:{port}" in capsys.readouterr().err
