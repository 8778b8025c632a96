from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from scheduler.cli import run_cli
from scheduler.cli.exits import Exit
from tests.layout.tree import ROOT

pytestmark = pytest.mark.long

TOKEN = "0123456789abcdef"


def test_it_serves_a_store_until_it_is_interrupted(tmp_path: Path) -> None:
    store = f"file://{tmp_path}"
    options = ["--json", "--port", "0", "--store", store, "--token-env", "PAGES_TOKEN"]
    with subprocess.Popen(
        [sys.executable, "-m", "scheduler", "serve", *options],
        cwd=ROOT,
        env={**os.environ, "PAGES_TOKEN": TOKEN},
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        url = json.loads(process.stdout.readline())["url"]
        with pytest.raises(urllib.error.HTTPError, match="401"):
            urllib.request.urlopen(url, timeout=30)
        asked = urllib.request.Request(url, headers={"Authorization": f"Bearer {TOKEN}"})
        with urllib.request.urlopen(asked, timeout=30) as answer:
            assert "There is no sweep in this store yet" in answer.read().decode()
        os.kill(process.pid, signal.SIGINT)
        assert process.wait(timeout=30) == Exit.DONE


def test_a_port_that_is_taken_is_said_to_be(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        arguments = ["serve", "--port", str(port), "--store", f"file://{tmp_path}"]
        assert run_cli(arguments) == Exit.USAGE
    assert f"cannot listen on 127.0.0.1:{port}" in capsys.readouterr().err


@pytest.mark.parametrize("token", ["", "short", " " * 40])
def test_a_token_that_is_none_is_refused(
    token: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PAGES_TOKEN", token)
    arguments = ["serve", "--store", f"file://{tmp_path}", "--token-env", "PAGES_TOKEN"]
    assert run_cli(arguments) == Exit.USAGE
    assert "PAGES_TOKEN must hold 16 characters or more" in capsys.readouterr().err
