"""A real Prometheus with the shipped configuration, but for its pace."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from tests.flow.sweeps import ROOT

SHIPPED = ROOT / "deploy" / "monitoring" / "prometheus"
READY_S = 60.0
Series = dict[tuple[tuple[str, str], ...], float]


@dataclass
class Prometheus:
    """Its HTTP API."""

    url: str
    driver_port: int
    """Where its configuration looks for a driver."""

    def ask(self, path: str, **parameters: Any) -> Any:
        """The data of an answer.

        Raises:
            AssertionError: it was refused.
        """
        query = urllib.parse.urlencode(parameters)
        try:
            with urllib.request.urlopen(f"{self.url}{path}?{query}", timeout=60) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{parameters}: {error.read().decode()}") from error

    def at(self, expression: str, when: float) -> Series:
        """The values at a moment."""
        found = self.ask("/api/v1/query", query=expression, time=when)["result"]
        return {_labels(each["metric"]): float(each["value"][1]) for each in found}

    def latest(self, expression: str, started: float, ended: float) -> Series:
        """The last value of every series that there was in a span of time."""
        found = self.ask("/api/v1/query_range", query=expression, start=started, end=ended, step=1)[
            "result"
        ]
        return {_labels(each["metric"]): float(each["values"][-1][1]) for each in found}

    def wait_for_scrape(self, timeout_s: float) -> None:
        """Waits until every target that answers was scraped, and the rules evaluated, from now."""
        since = time.time()
        give_up = time.monotonic() + timeout_s
        while time.monotonic() < give_up:
            # Rules use what was scraped before them: two evaluations after the scrape will do.
            seen = self.at('min(timestamp(up{role="driver"}))', time.time())
            ruled = self.ask("/api/v1/rules")["groups"]
            if (
                all(value > since for value in seen.values())
                and seen
                and all(_seconds(group["lastEvaluation"]) > since + 3 for group in ruled)
            ):
                return
            time.sleep(0.3)
        raise AssertionError(f"not scraped within {timeout_s:g} s")


@contextmanager
def prometheus(folder: Path) -> Iterator[Prometheus]:
    """Runs one in a folder, scraping and evaluating every second."""
    folder.mkdir(parents=True)
    (folder / "targets").mkdir()
    for name in ("rules.yml", "alerts.yml"):
        shutil.copy(SHIPPED / name, folder)
    port, driver_port = _free_ports(2)
    quick = (SHIPPED / "prometheus.yml").read_text()
    for shipped, ours in (
        ("15s", "1s"),
        (": 5s", ": 1s"),
        ("localhost:9464", f"127.0.0.1:{driver_port}"),
    ):
        assert shipped in quick
        quick = quick.replace(shipped, ours)
    (folder / "prometheus.yml").write_text(quick)
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [
                "prometheus",
                "--config.file=prometheus.yml",
                "--storage.tsdb.path=data",
                f"--web.listen-address=127.0.0.1:{port}",
            ],
            cwd=folder,
            stdout=log,
            stderr=subprocess.STDOUT,
        )
        try:
            made = Prometheus(f"http://127.0.0.1:{port}", driver_port)
            _wait_until_ready(made, process, folder / "log")
            yield made
        finally:
            process.terminate()
            process.wait(30)


def _free_ports(count: int) -> list[int]:
    with ExitStack() as stack:
        found = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in found:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in found]


def _wait_until_ready(made: Prometheus, process: subprocess.Popen[bytes], log: Path) -> None:
    give_up = time.monotonic() + READY_S
    while time.monotonic() < give_up and process.poll() is None:
        try:
            with urllib.request.urlopen(f"{made.url}/-/ready", timeout=5):
                return
        except OSError:
            time.sleep(0.1)
    raise AssertionError(f"Prometheus is not ready:\n{log.read_text()[-2000:]}")


def _labels(metric: dict[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(metric.items()))


def _seconds(stamp: str) -> float:
    """RFC 3339 with nanoseconds, as Go writes it."""
    head, _, rest = stamp.partition(".")
    digits = rest.rstrip("Z")
    zone = ""
    for sign in "+-":
        if sign in digits:
            digits, _, offset = digits.partition(sign)
            zone = f"{sign}{offset}"
    return datetime.fromisoformat(
        f"{head}.{digits[:6].ljust(6, '0')}{zone or '+00:00'}"
    ).timestamp()
