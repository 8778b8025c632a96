from __future__ import annotations

import json
from pathlib import Path

import pytest

from scheduler.cli import run_cli
from scheduler.cli.exits import Exit
from tests.base_image import base_image

pytestmark = pytest.mark.docker


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("APIARY_BASE_IMAGE", base_image())


def test_all_is_well_where_trials_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_cli(["doctor"]) == Exit.DONE
    shown = capsys.readouterr().out
    for subject in ("Python", "Ray", "Docker", "base image", "kernel", "disk", "clock", "store"):
        assert f"✓ {subject} " in shown
    assert "a loopback socket was opened inside one" in shown
    assert not list(tmp_path.rglob("doctor/*")), "the store keeps what was tried"


def test_what_is_to_be_mended_is_said_with_what_to_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("APIARY_BASE_IMAGE", "apiary-base:nowhere")
    endpoints = tmp_path / "live.json"
    endpoints.write_text('{"live": {"provider": "openai", "api_key_env": "LIVE_KEY"}}')
    arguments = ["doctor", "--json", "--store", "ftp://x", "--endpoint-config", str(endpoints)]
    assert run_cli(arguments) == Exit.INFRASTRUCTURE
    findings = {each["subject"]: each for each in json.loads(capsys.readouterr().out)}
    assert findings["base image"]["state"] == "fail"
    assert findings["kernel"]["state"] == "warn"
    assert findings["store"]["todo"] == "correct --store or APIARY_STORE"
    assert findings["endpoints live.json"]["found"] == "not set: LIVE_KEY"


def test_without_an_engine_it_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")
    assert run_cli(["doctor"]) == Exit.INFRASTRUCTURE
    assert "✗ Docker" in capsys.readouterr().out
