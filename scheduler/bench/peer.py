"""Harbor beside Apiary: the same task, as often, as many at once, by Harbor's own command.

Harbor is no dependency: it needs Python 3.12 or later and Docker's compose plugin. Where both are,
a virtual environment of its own is enough: ``python3.12 -m venv V && V/bin/pip install harbor``.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from statistics import median
from typing import Any

from scheduler.bench.processes import BenchError, end_all, start

WITHIN_S = 3600.0
ASK_S = 120.0
GET_HARBOR = (
    "`--peer harbor` needs Harbor: with Python 3.12 or later, `python3.12 -m venv V && "
    "V/bin/pip install harbor`, then give `--peer-program V/bin/harbor`"
)
GET_COMPOSE = (
    "`--peer harbor` needs Docker's compose plugin, version 2: install the package "
    "docker-compose-plugin, or put the program into ~/.docker/cli-plugins"
)


@dataclass(frozen=True)
class PeerRun:
    """What one of its jobs took."""

    trials: int
    trials_s: float
    """From the first trial's start to the last one's end."""
    trial_s: float
    """The median trial."""

    @property
    def per_s(self) -> float:
        """Trials a second."""
        return self.trials / self.trials_s


class Harbor:
    """Harbor's command, found and fit to run."""

    def __init__(self, program: str, folder: Path, environment: Mapping[str, str]) -> None:
        """Asks for its version.

        Args:
            program: its command, by path or name.
            folder: for its jobs.
            environment: of its processes.

        Raises:
            BenchError: it cannot be run here; the message says what is missing, and how to get it.
        """
        found = shutil.which(program, path=environment.get("PATH"))
        if found is None:
            raise BenchError(f"there is no program {program!r}: {GET_HARBOR}")
        self._program = found
        self._folder = folder
        # A measurement tells nobody what it measured.
        self._environment = {**environment, "HARBOR_TELEMETRY": "off"}
        self._jobs = 0
        self._ask(["docker", "compose", "version"], GET_COMPOSE)
        self.version = self._ask([found, "--version"], GET_HARBOR).strip()

    def run(self, tasks: Path, attempts: int, parallel: int, mark: str) -> PeerRun:
        """Runs a job to its end.

        Args:
            tasks: the folder of tasks, with one in it.
            attempts: of it.
            parallel: at once.
            mark: by which what it starts is found.

        Raises:
            BenchError: it did not end, or not every trial passed: its time means nothing.
        """
        self._jobs += 1
        name, log = f"job-{self._jobs}", self._folder / f"job-{self._jobs}.log"
        process = start(
            [
                *(self._program, "run", "--path", str(tasks), "--agent", "oracle", "--yes"),
                *("--n-attempts", str(attempts), "--n-concurrent", str(parallel), "--quiet"),
                *("--jobs-dir", str(self._folder / "jobs"), "--job-name", name),
            ],
            self._environment,
            mark,
            self._folder,
            log,
        )
        try:
            code = process.wait(WITHIN_S)
        except subprocess.TimeoutExpired as error:
            raise BenchError(f"harbor: no end within {WITHIN_S:g} s; see {log}") from error
        finally:
            end_all(mark)
        places = (self._folder / "jobs" / name).glob("*/result.json")
        results = [json.loads(place.read_bytes()) for place in places]
        passed = [each for each in results if _reward(each) == 1.0]
        if code != 0 or len(passed) != attempts:
            said = log.read_text(errors="replace")[-1000:]
            raise BenchError(
                f"harbor ended with {code} and {len(passed)} of {attempts} passes: {said}"
            )
        spans = [(_at(each["started_at"]), _at(each["finished_at"])) for each in results]
        return PeerRun(
            trials=len(spans),
            trials_s=max(end for _, end in spans) - min(began for began, _ in spans),
            trial_s=median(end - began for began, end in spans),
        )

    def _ask(self, command: list[str], missing: str) -> str:
        try:
            done = subprocess.run(
                command, env=self._environment, capture_output=True, text=True, timeout=ASK_S
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise BenchError(f"{os.path.basename(command[0])}: {error}; {missing}") from error
        if done.returncode != 0:
            said = (done.stderr.strip() or done.stdout.strip()).partition("\n")[0]
            raise BenchError(f"`{' '.join(command)}` says: {said}; {missing}")
        return done.stdout


def _reward(result: Mapping[str, Any]) -> float | None:
    told = (result.get("verifier_result") or {}).get("rewards") or {}
    return next(iter(told.values()), None)


def _at(moment: str) -> float:
    return datetime.fromisoformat(moment).timestamp()
