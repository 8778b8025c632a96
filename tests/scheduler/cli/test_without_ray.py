"""Commands that only read do their whole work without Ray, which takes seconds to load."""

from __future__ import annotations

import subprocess
import sys

import pytest

from scheduler.cli import run_cli
from scheduler.cli.exits import Exit
from tests.scheduler.cli.builders import FakeDriver, World

pytestmark = pytest.mark.long

PROGRAM = (
    "import sys; from scheduler.cli import run_cli; code = run_cli(sys.argv[1:]); "
    "print(int(code), sorted(name for name in sys.modules if name.partition('.')[0] == 'ray'))"
)


@pytest.mark.parametrize("name", ["plan", "report", "show"])
def test_a_command_that_only_reads_never_imports_ray(
    name: str, world: World, driver: FakeDriver
) -> None:
    assert run_cli(["run", str(world.sweep)]) == Exit.DONE
    attempt = driver.calls[0]["plan"].attempts[0].attempt
    arguments = {"plan": [str(world.sweep)], "report": [], "show": [attempt[:8]]}[name]
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM, name, *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
        cwd=world.root,
        env={"PYTHONPATH": ":".join(path for path in sys.path if path), "PATH": "/usr/bin:/bin"},
    )
    assert ended.stdout.splitlines()[-1] == "0 []"
