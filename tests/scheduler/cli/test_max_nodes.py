"""``--max-nodes``: a cluster may be asked for nodes, a machine alone may not."""

from __future__ import annotations

import pytest

from scheduler.cli import run_cli
from scheduler.cli.exits import Exit
from tests.scheduler.cli.builders import FakeDriver, World

CLUSTER = ("--ray-address", "head:6379")


@pytest.mark.parametrize("command", ["run", "resume"])
def test_a_cluster_is_asked_for_so_many_nodes_at_most(
    world: World, driver: FakeDriver, command: str
) -> None:
    target = str(world.sweep)
    if command == "resume":
        assert run_cli(["run", target, "--lock-only"]) == Exit.DONE
        target = "latest"
    assert run_cli([command, target, *CLUSTER, "--max-nodes", "7"]) == Exit.DONE
    assert driver.calls[0]["max_nodes"] == 7


def test_without_it_the_nodes_that_are_there_are_used(world: World, driver: FakeDriver) -> None:
    assert run_cli(["run", str(world.sweep), *CLUSTER]) == Exit.DONE
    assert driver.calls[0]["max_nodes"] is None


@pytest.mark.parametrize("command", ["run", "resume"])
def test_without_a_cluster_it_is_refused(
    world: World, driver: FakeDriver, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    assert run_cli([command, str(world.sweep), "--max-nodes", "7"]) == Exit.USAGE
    assert "--max-nodes needs --ray-address" in capsys.readouterr().err
    assert driver.calls == []
