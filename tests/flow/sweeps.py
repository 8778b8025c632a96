"""Whole sweeps through the command line, and a watch over what they must not show."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from tests.base_image import base_image

ROOT = Path(__file__).resolve().parents[2]
DEMO = ROOT / "manifests" / "sweeps" / "demo.yaml"
RUN_S = 600.0
LABEL = "label=apiary.sweep"
SECRETS = ("BUZZ_PRIVATE_KEY", "APIARY_GATEWAY_TOKEN")


@dataclass
class Ran:
    """A command that ended."""

    home: Path
    """Its working directory; store, workspace and logs are in its ``.apiary``."""
    code: int
    events: list[dict[str, Any]]
    errors: str

    @property
    def sweep(self) -> str:
        """The id of the sweep."""
        return str(self.events[0]["sweep"])

    @property
    def summary(self) -> dict[str, Any]:
        """What the report says."""
        return dict(self.events[-1]["summary"])

    @property
    def results(self) -> list[dict[str, Any]]:
        """Every ``result.json``."""
        found = (self.home / ".apiary" / "sweeps" / self.sweep / "attempts").rglob("result.json")
        return [json.loads(path.read_bytes()) for path in sorted(found)]

    def tries(self) -> list[Path]:
        """The folder of every try."""
        found = (self.home / ".apiary" / "sweeps" / self.sweep / "tries").rglob("try.json")
        return sorted(path.parent for path in found)


def apiary(
    home: Path,
    *arguments: str,
    on_event: Callable[[dict[str, Any], int], None] | None = None,
    variables: Mapping[str, str] | None = None,
) -> Ran:
    """Runs ``apiary … --json`` in a working directory, to its end.

    Args:
        home: the working directory.
        arguments: of the command.
        on_event: is given every event as it comes, and the id of the process.
        variables: more of the environment.
    """
    home.mkdir(parents=True, exist_ok=True)
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "PYTHONPATH": str(ROOT),
        "APIARY_BASE_IMAGE": base_image(),
        **(variables or {}),
    }
    process = subprocess.Popen(
        [sys.executable, "-m", "scheduler", *arguments, "--json"],
        cwd=home,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    watchdog = threading.Timer(RUN_S, process.kill)
    watchdog.start()
    errors: list[str] = []
    drain = threading.Thread(target=lambda: errors.append(process.stderr.read()))  # type: ignore[union-attr]
    drain.start()
    events = []
    try:
        assert process.stdout is not None
        for line in process.stdout:
            events.append(json.loads(line))
            if on_event is not None:
                on_event(events[-1], process.pid)
        code = process.wait()
    finally:
        watchdog.cancel()
        if process.poll() is None:
            process.kill()
        drain.join()
        process.stdout.close()
        process.stderr.close()  # type: ignore[union-attr]
    return Ran(home, code, events, "".join(errors))


class Seen(NamedTuple):
    """A container that a sweep started."""

    sweep: str
    secrets: frozenset[str]
    """The agents' keys and gateway tokens, from its environment; empty: it is no agent's."""
    shown: str
    """What anybody may see of it: name, command, labels."""


@dataclass
class Watch:
    """What a watcher of the machine saw while a sweep ran."""

    containers: list[Seen] = field(default_factory=list)
    """Of this and of other sweeps."""
    command_lines: set[bytes] = field(default_factory=set)
    """Of all processes of the machine."""

    def of(self, sweep: str) -> list[Seen]:
        """The containers of one sweep."""
        return [each for each in self.containers if each.sweep == sweep]


@contextmanager
def watching() -> Iterator[Watch]:
    """Looks into every container that a sweep starts, and at the process list."""
    seen, ended = Watch(), threading.Event()
    stream = subprocess.Popen(
        ["docker", "events", "--format", "{{.ID}}", "--filter", "event=start", "--filter", LABEL],
        stdout=subprocess.PIPE,
        text=True,
    )
    threads = [
        threading.Thread(target=_watch_containers, args=(stream, seen)),
        threading.Thread(target=_watch_processes, args=(seen, ended)),
    ]
    for thread in threads:
        thread.start()
    try:
        yield seen
    finally:
        ended.set()
        stream.terminate()
        for thread in threads:
            thread.join()
        stream.wait()
        assert stream.stdout is not None
        stream.stdout.close()


def left_in_docker(sweep: str) -> dict[str, list[str]]:
    """Containers, volumes and networks that bear a sweep's label."""
    label = f"label=apiary.sweep={sweep}"
    return {
        kind: subprocess.run(
            ["docker", *command, "--filter", label, "-q"],
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        ).stdout.split()
        for kind, command in (
            ("containers", ["ps", "-a"]),
            ("volumes", ["volume", "ls"]),
            ("networks", ["network", "ls"]),
        )
    }


def _watch_containers(stream: subprocess.Popen[str], seen: Watch) -> None:
    assert stream.stdout is not None
    for line in stream.stdout:
        told = subprocess.run(
            ["docker", "inspect", line.strip()], capture_output=True, text=True, timeout=60
        )
        if told.returncode == 0:
            _look(json.loads(told.stdout)[0], seen)


def _look(container: dict[str, Any], seen: Watch) -> None:
    config = container["Config"]
    secrets: set[str] = set()
    for variable in config["Env"] or ():
        name, _, value = variable.partition("=")
        # The engine is shared: of another test's agent `buzz` it holds no JSON.
        if name == "APIARY_AGENTS" and value.startswith("["):
            secrets |= {agent[key] for agent in json.loads(value) for key in SECRETS}
    visible = [container["Name"], container["Path"], container["Args"], config["Labels"]]
    sweep = config["Labels"].get("apiary.sweep", "")
    seen.containers.append(Seen(sweep, frozenset(secrets), json.dumps(visible)))


def _watch_processes(seen: Watch, ended: threading.Event) -> None:
    while not ended.wait(0.5):
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                seen.command_lines.add(path.read_bytes())
            except OSError:
                continue  # it ended while we looked
