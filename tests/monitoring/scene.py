"""A mixed sweep with faults in it, scraped by a real Prometheus while it runs."""

from __future__ import annotations

import json
import shutil
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from scheduler.metrics import SeriesMetrics
from tests.flow.sweeps import ROOT, Ran, apiary
from tests.flow.test_budget import served_model
from tests.monitoring.prometheus import Prometheus, prometheus
from workers.exposition import served

TASKS = ("user-mention", "reply-to-thread", "ambiguous-user-mention")
BROKEN_TASK = "broken-image"
PROFILES = {
    "able": "scripted-solver",
    "sloppy": "scripted-sloppy",
    "silent": "scripted-silent",
    "slow": "scripted-slow",
    "limited": "scripted-rate_limited",
    "cut": "scripted-broken",
}
"""Condition and endpoint to the model that it gets."""
ELSEWHERE = ("slow", "limited", "cut")
"""Served elsewhere than by the node, so that rate control looks after them, each on its own."""
SERIES = "weekly"
LINGER_S = 20
MAX_TRIES = 2
SEEN_S = 60.0


@dataclass
class Scene:
    """What ran, and the Prometheus that watched."""

    ran: Ran
    watcher: Prometheus
    started: float
    ended: float
    """While the driver lingered; seconds since 1970."""
    killed: list[str] = field(default_factory=list)
    """Containers that were killed."""

    @property
    def sweep(self) -> str:
        """The sweep's id."""
        return self.ran.sweep

    def latest(self, expression: str) -> dict[tuple[tuple[str, str], ...], float]:
        """The last value of every series that the expression ever had, by its labels."""
        return self.watcher.latest(expression, self.started, self.ended)

    def tries(self) -> list[dict[str, Any]]:
        """The record of every try in the store."""
        return [json.loads((folder / "try.json").read_bytes()) for folder in self.ran.tries()]

    def outcomes(self) -> Counter[tuple[str, str, str, str, bool]]:
        """Condition, verdict, blame, cause, and whether it is settled: by what the store says.

        Of an attempt with a result that; else the last of its tries, and whether all are spent.
        """
        by_attempt: dict[str, list[dict[str, Any]]] = {}
        for record in self.tries():
            by_attempt.setdefault(record["attempt"], []).append(record)
        results = {record["attempt"]: record for record in self.ran.results}
        found = Counter[tuple[str, str, str, str, bool]]()
        for attempt, records in by_attempt.items():
            # A probe that its provider fails once more spends none of the attempt's tries.
            spent = [
                each for each in records if not (each["probe"] and each["blame"] == "provider")
            ]
            last = max(records, key=lambda record: tuple(record["epoch"]))
            told = results.get(attempt, last)
            settled = attempt in results or len(spent) >= MAX_TRIES
            outcome = (told["condition"], told["verdict"], told["blame"], told["cause"])
            found[(*outcome, settled)] += 1
        return found


@contextmanager
def scene(home: Path) -> Iterator[Scene]:
    """Runs the sweep to its end; Prometheus answers until the scene is left."""
    with ExitStack() as stack:
        urls = {name: stack.enter_context(served_model())[0] for name in ELSEWHERE}
        sweep_file = _write_inputs(home, urls)
        targets = home / "prometheus" / "targets"
        watcher = stack.enter_context(prometheus(home / "prometheus"))
        series = SeriesMetrics()
        series.planned(SERIES, 7 * 86400.0)
        series.succeeded(SERIES, time.time() - 86400.0, {"able": 1.0, "sloppy": 0.25}, 1)
        address = stack.enter_context(served(series.exposition, 0, "127.0.0.1"))
        host = address.split("/")[2]
        (targets / "series.json").write_text(
            json.dumps([{"targets": [host], "labels": {"role": "timetable"}}])
        )
        killer = _Killer()
        ended: list[float] = []

        def on_event(event: dict[str, Any], _: int) -> None:
            if event["event"] == "start":
                killer.start(event["sweep"])
            elif event["event"] == "end":
                # The driver lingers: Prometheus scrapes once more what there is at the end.
                watcher.wait_for_scrape(SEEN_S)
                ended.append(time.time())

        started = time.time()
        try:
            ran = apiary(
                home,
                *("run", str(sweep_file), "-n", "4"),
                *("--metrics-port", str(watcher.driver_port), "--metrics-linger", str(LINGER_S)),
                *("--metrics-targets", str(targets / "sweep.json")),
                on_event=on_event,
            )
        finally:
            killer.stop()
        assert ended, ran.errors
        yield Scene(ran, watcher, started, ended[0], killer.killed)


def _write_inputs(home: Path, urls: Mapping[str, str]) -> Path:
    manifests = home / "manifests"
    for folder in ("verifier_kit", "personas", *(f"tasks/{task}" for task in TASKS)):
        shutil.copytree(ROOT / "manifests" / folder, manifests / folder)
    broken = manifests / "tasks" / BROKEN_TASK
    shutil.copytree(manifests / "tasks" / TASKS[0], broken)
    task = broken / "task.toml"
    task.write_text(
        task.read_text().replace(f"buzz-native/{TASKS[0]}", f"buzz-native/{BROKEN_TASK}")
    )
    dockerfile = broken / "environment" / "Dockerfile"
    dockerfile.write_text(dockerfile.read_text() + "RUN exit 7\n")
    solver = (ROOT / "manifests" / "conditions" / "scripted-solver.yaml").read_text()
    (manifests / "conditions").mkdir()
    (manifests / "sweeps").mkdir()
    endpoints: dict[str, dict[str, str]] = {}
    for name, model in PROFILES.items():
        text = solver.replace("scripted-solver", name)
        (manifests / "conditions" / f"{name}.yaml").write_text(text)
        endpoints[name] = {"provider": "scripted", "model": model}
        if name in urls:
            endpoints[name]["base_url"] = urls[name]
    (manifests / "sweeps" / "endpoints.json").write_text(json.dumps(endpoints))
    only = {"slow": [TASKS[0]], "cut": [TASKS[0]], "limited": list(TASKS[:2]), "silent": [TASKS[0]]}
    sweep = {
        "name": "mixed",
        "tasks": {"path": "../tasks"},
        "attempts": 2,
        "conditions": [_use(name, only) for name in PROFILES],
        "endpoints": "endpoints.json",
        "network": "sealed",
        "budget": {"max_cost_usd": 100.0},
        "limits": {
            "max_tries": MAX_TRIES,
            "node_breaker": 100,
            "endpoint_breaker": 6,
            "endpoint_probe_s": 3.0,
            "endpoint_give_up_s": 8.0,
        },
    }
    path = manifests / "sweeps" / "mixed.yaml"
    path.write_text(json.dumps(sweep))  # which is YAML too
    return path


def _use(name: str, only: Mapping[str, list[str]]) -> Any:
    path = f"../conditions/{name}.yaml"
    include = only.get(name, [])
    return {"path": path, "include": include} if include else path


class _Killer:
    """Kills one container of agents as soon as there is one."""

    def __init__(self) -> None:
        self.killed: list[str] = []
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self, sweep: str) -> None:
        self._thread = threading.Thread(target=self._run, args=(sweep,))
        self._thread.start()

    def stop(self) -> None:
        self._ended.set()
        if self._thread is not None:
            self._thread.join()

    def _run(self, sweep: str) -> None:
        while not self.killed and not self._ended.wait(0.3):
            for container in _docker("ps", "-q", "--filter", f"label=apiary.sweep={sweep}"):
                told = "".join(_docker("inspect", "-f", "{{.Config.Env}}", container))
                if "APIARY_AGENTS=" in told and _docker("kill", container):
                    self.killed.append(container)
                    return


def _docker(*arguments: str) -> list[str]:
    done = subprocess.run(["docker", *arguments], capture_output=True, text=True, timeout=60)
    return done.stdout.split() if done.returncode == 0 else []
