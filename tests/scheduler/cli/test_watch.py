"""``apiary watch``, in scripts and in a real pseudo-terminal."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from scheduler.cli import run_cli
from scheduler.cli.exits import Exit
from tests.layout.tree import ROOT
from tests.scheduler.cli.builders import FakeDriver, World
from tests.scheduler.watch.builders import SWEEP, claim, put, sweep_document
from tests.workers.store_doubles import file_store
from workers.contract.outcome import Cause
from workers.storage import Store

ENTER, LEAVE = "\x1b[?1049h", "\x1b[?1049l"
"""The alternate screen, on and off."""


def test_once_prints_and_ends(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    put(world.store, sweep_document(state="settled"))
    assert run_cli(["watch", "--once"]) == Exit.DONE
    shown = capsys.readouterr().out
    assert "ended, settled (driver 1 on box" in shown
    assert "model: no_reply" in shown
    assert "\x1b" not in shown


def test_without_a_terminal_it_prints_once(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    put(world.store, sweep_document(state="settled"))
    assert run_cli(["watch", SWEEP[:6]]) == Exit.DONE
    assert "10/24 settled" in capsys.readouterr().out


def test_json_is_one_document_a_line(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    put(world.store, sweep_document(state="settled"))
    assert run_cli(["watch", "--json"]) == Exit.DONE
    (line,) = capsys.readouterr().out.splitlines()
    document = json.loads(line)
    assert (document["standing"], document["spending"]["calls"]) == ("ended", 12)


def test_an_old_sweep_is_shown_from_its_results(
    world: World, driver: FakeDriver, capsys: pytest.CaptureFixture[str]
) -> None:
    run_cli(["run", str(world.sweep)])
    capsys.readouterr()
    assert run_cli(["watch", "latest"]) == Exit.DONE
    shown = capsys.readouterr().out
    assert "no driver has shown this sweep" in shown
    assert "8/8 settled" in shown


def test_a_trial_is_found_before_it_has_run(
    world: World, driver: FakeDriver, capsys: pytest.CaptureFixture[str]
) -> None:
    driver.outcomes = lambda place: () if place == 0 else (Cause.NONE,)
    run_cli(["run", str(world.sweep)])
    plan = driver.calls[0]["plan"]
    capsys.readouterr()
    waiting, ended = plan.attempts[0].attempt, plan.attempts[1].attempt
    assert run_cli(["watch", "--trial", waiting[:12]]) == Exit.DONE
    assert "has not been tried, and no driver is at work" in capsys.readouterr().out
    assert run_cli(["watch", "--trial", ended[:12], "--json"]) == Exit.DONE
    (line,) = capsys.readouterr().out.splitlines()
    assert json.loads(line)["record"]["verdict"] == "pass"
    assert not list(world.store.keys(f"sweeps/{plan.sweep}/watched/"))


def test_a_trial_that_is_none_is_refused(
    world: World, driver: FakeDriver, capsys: pytest.CaptureFixture[str]
) -> None:
    run_cli(["run", str(world.sweep)])
    assert run_cli(["watch", "--trial", "xyz"]) == Exit.USAGE
    assert run_cli(["watch", "--trial", "0123456789abcdef"]) == Exit.USAGE
    assert "no planned attempt begins with" in capsys.readouterr().err


class Terminal:
    """A command in a pseudo-terminal."""

    def __init__(self, store: Store, columns: int, lines: int, **environment: str) -> None:
        self.said = ""
        self.main, child = pty.openpty()
        self.resize(columns, lines, tell=False)
        self.before = termios.tcgetattr(child)
        clean = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "LINES", "NO_COLOR")}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "scheduler", "watch", "--store", store.url],
            cwd=ROOT,
            stdin=child,
            stdout=child,
            stderr=child,
            env={**clean, "TERM": "xterm-256color", **environment},
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )
        self.child = child

    def resize(self, columns: int, lines: int, *, tell: bool = True) -> None:
        fcntl.ioctl(self.main, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        if tell:
            os.killpg(self.process.pid, signal.SIGWINCH)

    def press(self, keys: bytes) -> None:
        os.write(self.main, keys)

    def until(self, condition: Callable[[str], bool]) -> str:
        """What was written from now on, once it is as expected."""
        begun = len(self.said)
        give_up = time.monotonic() + 60.0
        while not condition(self.said[begun:]):
            assert time.monotonic() < give_up, self.said[begun:]
            if select.select([self.main], [], [], 0.2)[0]:
                with contextlib.suppress(OSError):
                    self.said += os.read(self.main, 65536).decode("utf-8", "replace")
        return self.said[begun:]

    def ended(self) -> int:
        """Its exit code; the terminal is as it was before."""
        give_up = time.monotonic() + 30.0
        while self.process.poll() is None:
            assert time.monotonic() < give_up, "it did not end"
            if select.select([self.main], [], [], 0.1)[0]:
                self.said += os.read(self.main, 65536).decode("utf-8", "replace")
        while select.select([self.main], [], [], 0.1)[0]:
            self.said += os.read(self.main, 65536).decode("utf-8", "replace")
        assert termios.tcgetattr(self.child) == self.before
        assert self.said.count(ENTER) == self.said.count(LEAVE) == 1
        return self.process.returncode


@contextlib.contextmanager
def terminal(store: Store, columns: int = 80, lines: int = 24, **more: str) -> Iterator[Terminal]:
    made = Terminal(store, columns, lines, **more)
    try:
        yield made
    finally:
        if made.process.poll() is None:
            made.process.kill()
        made.process.wait(10.0)
        os.close(made.main)
        os.close(made.child)


def running(folder: Path) -> Store:
    """A store with a sweep whose driver is at work, as far as anybody can tell."""
    store = file_store(folder)
    claim(store)
    put(store, sweep_document())
    return store


@pytest.mark.long
def test_a_sweep_that_ends_while_it_is_watched(tmp_path: Path) -> None:
    store = running(tmp_path)
    with terminal(store) as shown:
        assert "10/24" in shown.until(lambda text: "q leaves; the sweep goes on" in text)
        put(store, sweep_document(number=2, state="settled"))
        shown.until(lambda text: "ended, settled" in text)
        assert shown.process.poll() is None
        shown.press(b"\x1b[A")
        shown.press(b"x")
        put(store, sweep_document(number=3, state="settled", reason="again"))
        shown.until(lambda text: "settled: again" in text)
        shown.press(b"q")
        assert shown.ended() == 0
        assert "ended, settled" in shown.said.rpartition(LEAVE)[2]


@pytest.mark.long
@pytest.mark.parametrize("number", [None, signal.SIGTERM, signal.SIGHUP])
def test_whoever_leaves_finds_the_terminal_as_it_was(
    tmp_path: Path, number: signal.Signals | None
) -> None:
    with terminal(running(tmp_path)) as shown:
        shown.until(lambda text: "10/24" in text)
        if number is None:
            shown.press(b"\x03")
        else:
            shown.process.send_signal(number)
        assert shown.ended() == 0


@pytest.mark.long
def test_a_driver_that_is_killed_is_told_of(tmp_path: Path) -> None:
    store = running(tmp_path)
    with terminal(store) as shown:
        shown.until(lambda text: "running, driver 1" in text)
        shown.until(lambda text: "NOT RUNNING: driver 1 on box is not at work" in text)
        put(store, sweep_document(number=2))
        shown.until(lambda text: "running, driver 1" in text)
        shown.press(b"q")
        assert shown.ended() == 0


@pytest.mark.long
def test_a_terminal_that_is_resized_and_has_no_colour(tmp_path: Path) -> None:
    with terminal(running(tmp_path), NO_COLOR="1") as shown:
        shown.until(lambda text: "q leaves" in text)
        shown.resize(34, 10)
        narrow = shown.until(lambda text: "inv" in text and "q leaves" in text)
        frame = narrow[narrow.rindex("\x1b[H") :]
        plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", frame)
        assert all(len(line.rstrip("\r")) <= 34 for line in plain.split("\n"))
        shown.resize(120, 40)
        shown.until(lambda text: "waiting" in text and "greet × solver #1" in text)
        colours = re.findall(r"\x1b\[[0-9;]*3[0-9](?:;[0-9]+)*m", shown.said)
        assert not colours
        shown.press(b"q")
        assert shown.ended() == 0


@pytest.mark.long
def test_a_terminal_that_cannot_be_drawn_on_is_told_once(tmp_path: Path) -> None:
    with terminal(running(tmp_path), TERM="dumb") as shown:
        shown.until(lambda text: "10/24 settled" in text and "container_lost" in text)
        assert shown.process.wait(30.0) == 0
        assert "\x1b" not in shown.said


@pytest.mark.long
def test_a_terminal_without_unicode_shows_what_it_can(tmp_path: Path) -> None:
    with terminal(running(tmp_path), columns=40, PYTHONIOENCODING="latin-1") as shown:
        assert "demo-" in shown.until(lambda text: "10/24" in text and "q leaves" in text)
        shown.press(b"q")
        assert shown.ended() == 0
