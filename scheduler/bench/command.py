"""One ``apiary`` command of a bench, as a process with a session of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from scheduler.bench.processes import MARK, BenchError, send, send_group

PACKAGES = Path(__file__).resolve().parents[2]
"""Where the packages lie, so that commands find the same ones."""


class Command:
    """A command that prints events, and can be hurt."""

    def __init__(
        self, arguments: tuple[str, ...], environment: Mapping[str, str], mark: str, files: Path
    ) -> None:
        """Starts it.

        Args:
            arguments: of ``apiary``; ``--json`` is added.
            environment: of the process.
            mark: by which it and what it starts are found.
            files: ``<files>.out`` and ``<files>.err`` take what it writes.
        """
        self.arguments = arguments
        self._out, self._err = Path(f"{files}.out"), Path(f"{files}.err")
        with self._out.open("wb") as out, self._err.open("wb") as err:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "scheduler", *arguments, "--json"],
                cwd=files.parent,
                env={**environment, MARK: mark},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                start_new_session=True,
            )
        self.pid = self._process.pid
        self.started = time.monotonic()

    @property
    def code(self) -> int | None:
        """Its exit code; null while it runs."""
        return self._process.poll()

    def events(self, kind: str = "") -> list[dict[str, Any]]:
        """What it has printed so far, of one kind or all; a last line may be half written."""
        lines = self._out.read_bytes().split(b"\n")[:-1]
        found = [json.loads(line) for line in lines]
        return [each for each in found if not kind or each["event"] == kind]

    def errors(self) -> str:
        """What it wrote to standard error."""
        return self._err.read_text(errors="replace")

    def notes(self) -> list[str]:
        """The sentences that it told its user."""
        return [str(each["text"]) for each in self.events("note")]

    @property
    def end(self) -> dict[str, Any]:
        """Its last event; empty if it was cut short."""
        return next(iter(self.events("end")), {})

    @property
    def sweep(self) -> str:
        """The sweep's id; empty until it is told."""
        return next((str(each["sweep"]) for each in self.events("start")), "")

    def signal(self, number: int) -> None:
        """A signal to the command alone."""
        if self.code is None:
            send(self.pid, number)

    def signal_group(self, number: int) -> None:
        """A signal to everything in its process group, as a terminal sends it."""
        send_group(self.pid, number)

    def kill(self, *, group: bool = False) -> None:
        """SIGKILL, to the command or its group, and the command's end."""
        if group:
            self.signal_group(signal.SIGKILL)
        self.signal(signal.SIGKILL)
        self._process.wait(10.0)

    def wait(self, within_s: float) -> int:
        """Waits for its end, and gives its exit code.

        Raises:
            BenchError: it did not end in time; it is left alone.
        """
        try:
            return self._process.wait(within_s)
        except subprocess.TimeoutExpired as error:
            told = os.linesep.join([*self.notes()[-5:], self.errors()[-500:]])
            raise BenchError(
                f"apiary {' '.join(self.arguments)}: no end within {within_s:g} s; it said: {told}"
            ) from error
