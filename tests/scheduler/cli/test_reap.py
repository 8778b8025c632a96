from __future__ import annotations

import json
import os
import secrets
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from scheduler.cli import run_cli
from scheduler.cli.exits import Exit
from tests.base_image import base_image
from workers.container import ownership

pytestmark = [pytest.mark.docker, pytest.mark.alone]


@pytest.fixture
def expired() -> Iterator[str]:
    """The id of a container of ours that nobody needs any more, made on another machine."""
    name = f"apiary-{secrets.token_hex(8)}"
    labels = {ownership.OWNER: "1:1:0", ownership.EXPIRES: "1"}
    options = [f"--label={k}={v}" for k, v in ownership.with_proof(name, labels).items()]
    created = subprocess.run(
        ["docker", "create", f"--name={name}", *options, base_image(), "true"],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    identity = created.stdout.strip()
    yield identity
    subprocess.run(["docker", "rm", "-f", identity], capture_output=True, timeout=60)


def test_agent_files_that_no_sweep_has_used_go_with_the_workspace_that_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old, new = (tmp_path / "agent" / (digit * 64) for digit in "ab")
    for folder in (old, new):
        (folder / "lib").mkdir(parents=True)
    eight_days_ago = time.time() - 8 * 86_400
    os.utime(old, (eight_days_ago, eight_days_ago))
    for arguments in (["--dry-run"], []):
        assert old.is_dir()
        where = ["--workspace", str(tmp_path), "--node", "elsewhere", "--json"]
        assert run_cli(["reap", *arguments, *where]) == Exit.DONE
        shown = json.loads(capsys.readouterr().out)
        found = [each for each in shown["removed"] if each["kind"] == "bundles"]
        reason = "no sweep has used it for 8.0 days"
        assert found == [{"kind": "bundles", "id": str(old), "reason": reason}]
        assert shown["workspace"] == str(tmp_path)
    assert [each.name for each in (tmp_path / "agent").iterdir()] == [new.name]


def test_a_dry_run_removes_nothing_and_the_real_one_what_has_expired(
    expired: str, capsys: pytest.CaptureFixture[str]
) -> None:
    node = ["--node", "a-machine-that-is-not-this-one", "--json"]
    for arguments, still_there in ((["--dry-run"], True), ([], False)):
        assert run_cli(["reap", *arguments, *node]) == Exit.DONE
        shown = json.loads(capsys.readouterr().out)
        assert expired in {each["id"] for each in shown["removed"]}
        there = subprocess.run(["docker", "inspect", expired], capture_output=True, timeout=60)
        assert (there.returncode == 0) is still_there
