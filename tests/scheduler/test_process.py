"""Processes told apart from others that have their number."""

from __future__ import annotations

import os
import subprocess
import sys

from scheduler.process import is_gone, is_running, this_process


def test_this_process_is_not_gone() -> None:
    assert not is_gone(this_process())
    assert is_running(os.getpid())


def test_a_process_that_ended_is_gone_and_so_is_one_whose_number_was_given_again() -> None:
    machine, _, process = this_process().partition("/")
    _, _, started = process.partition("/")
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        pid = ended.pid
    assert is_gone(f"{machine}/{pid}/{started}")
    assert not is_running(pid)
    assert is_gone(f"{machine}/{os.getpid()}/1")


def test_a_zombie_does_not_run() -> None:
    zombie = subprocess.Popen([sys.executable, "-c", ""])
    try:
        os.waitid(os.P_PID, zombie.pid, os.WEXITED | os.WNOWAIT)
        assert not is_running(zombie.pid)
    finally:
        zombie.wait(10.0)


def test_of_another_machine_nothing_is_known() -> None:
    assert not is_gone("other:pid:[1]/1/1")
    assert not is_gone("")
    assert not is_gone(this_process().partition("/")[0])
