from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator

import pytest

from scheduler.cli import run_cli
from scheduler.cli.exits import Exit
from tests.base_image import base_image

pytestmark = pytest.mark.docker


@pytest.fixture
def expired() -> Iterator[str]:
    """The id of a container of ours that nobody needs any more."""
    created = subprocess.run(
        ["docker", "create", "--label", "apiary.expires=1", base_image(), "true"],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    identity = created.stdout.strip()
    yield identity
    subprocess.run(["docker", "rm", "-f", identity], capture_output=True, timeout=60)


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
