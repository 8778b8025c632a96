from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from workers.container import ownership


def test_this_process_is_not_gone() -> None:
    assert not ownership.is_gone(ownership.this_process())


def test_a_process_that_ended_is_gone_and_so_is_one_whose_pid_was_used_again() -> None:
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    owner = f"{process.pid}:{ownership.start_time(process.pid)}:{ownership.pid_namespace()}"
    assert not ownership.is_gone(owner)
    process.communicate(b"\n")
    assert ownership.is_gone(owner)
    assert ownership.is_gone(f"{os.getpid()}:1:{ownership.pid_namespace()}")


@pytest.mark.parametrize(
    "owner", ["", "1", "1:2", "x:y:z", f"{2**22 + 1}:1:0", "1:1:1", "-1:1:12345"]
)
def test_what_cannot_be_judged_from_here_is_not_gone(owner: str) -> None:
    assert not ownership.is_gone(owner)


def test_a_process_that_nobody_waited_for_is_gone() -> None:
    child = os.fork()
    if child == 0:
        os._exit(0)
    try:
        os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
        stat = Path(f"/proc/{child}/stat").read_text()
        started = stat.rpartition(")")[2].split()[19]
        assert ownership.is_gone(f"{child}:{started}:{ownership.pid_namespace()}")
    finally:
        os.waitpid(child, 0)


def test_a_process_of_this_boot_is_this_machines_whatever_its_node_is_called() -> None:
    owner = ownership.this_process()
    assert ownership.is_of_this_machine(owner)
    assert not ownership.is_of_this_machine(owner.rpartition(":")[0])
    assert not ownership.is_of_this_machine(f"{owner.rpartition(':')[0]}:another-boot")


def test_what_was_started_before_this_boot_is_gone() -> None:
    assert ownership.is_gone(f"{ownership.this_process().rpartition(':')[0]}:another-boot")
