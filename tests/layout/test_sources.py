"""Rules that hold for every file of the project."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from pathlib import Path

import pytest

from tests.layout.tree import ROOT, first_line, imports, modules, parsed, text_files

DOORS: dict[str, set[str]] = {
    "aiohttp": {
        "scheduler/bench/bucket.py",
        "scheduler/bench/gateway.py",
        "scheduler/bench/relay.py",
        "scheduler/serve/server.py",
        "workers/gateway",
        "workers/model",
        "workers/relay",
        "scheduler/series/notify.py",
    },
    "boto3": {"scheduler/bench/store_turns.py", "workers/storage/s3.py"},
    "botocore": {"workers/storage/s3.py"},
    "click": {"scheduler/cli"},
    "cronsim": {"scheduler/series/cron.py"},
    "docker": {"workers/container/api.py"},
    "jinja2": {"scheduler/templates.py"},
    "nostr_sdk": {"workers/nostr/sdk.py"},
    "prometheus_client": {"workers/exposition.py"},
    "pydantic": {"scheduler", "workers/contract"},
    "ray": {"scheduler/bench/ray_nodes.py", "scheduler/ray_client.py"},
    "requests": {"workers/container/api.py"},
    "rich": {"scheduler/cli", "scheduler/report/tables.py", "scheduler/watch"},
    "scipy": {"scheduler/report/distributions.py"},
    "urllib3": {"workers/container/api.py"},
    "yaml": {"scheduler/manifest/yaml_marks.py"},
    "yarl": {"workers/gateway"},
}
"""Every foreign library, and where it enters."""

ENVIRONMENT = {
    "scheduler/settings.py",
    "scheduler/ray_client.py",
    "workers/config.py",
    "workers/agent/buzz_client.py",
    "workers/agent/supervisor.py",
}
"""Who may look at the environment; Ray is told through it, hence the cluster."""

EMPTY_NAMES = {"utils", "util", "helpers", "common", "misc", "manager", "lib"}

MACHINE = re.compile(r"/home/(?!buzz\b)[a-z]+/|/U[s]ers/|/root/\.|" + re.escape(f"{ROOT}/"))
"""Paths that only one machine has; ``/home/buzz`` is inside a task's image."""


@pytest.mark.parametrize("library", DOORS)
def test_a_foreign_library_enters_by_its_door_alone(library: str) -> None:
    for module in modules():
        if library in imports(module):
            places = {module.as_posix(), *(parent.as_posix() for parent in module.parents)}
            assert places & DOORS[library], f"{module} imports {library}"


def test_no_library_enters_without_a_door() -> None:
    known = set(sys.stdlib_module_names) | {"scheduler", "workers", *DOORS}
    for module in modules():
        assert imports(module) <= known, f"{module} imports {imports(module) - known}"


def test_few_files_look_at_the_environment() -> None:
    looking = {
        module.as_posix()
        for module in modules()
        for node in ast.walk(parsed(module))
        if isinstance(node, ast.Attribute) and node.attr in ("environ", "getenv")
    }
    assert looking == ENVIRONMENT


def test_the_packages_themselves_import_nothing() -> None:
    # workers/__init__.py goes into every task container: an import there would drag the node in.
    for package in ("scheduler", "workers"):
        assert imports(Path(package) / "__init__.py") <= {"__future__"}


def test_every_module_says_what_it_is() -> None:
    for module in modules():
        assert re.search(r"[.:;!?]", first_line(module)), module


def test_no_name_that_says_nothing() -> None:
    for module in modules():
        assert not EMPTY_NAMES & {part.removesuffix(".py") for part in module.parts}, module


def test_no_file_knows_the_machine_it_was_written_on() -> None:
    for path in text_files():
        text = (ROOT / path).read_text("utf-8", errors="replace")
        found = MACHINE.search(text)
        assert found is None, f"{path} has {found and found[0]!r}"


def test_the_lock_pins_every_package_that_the_project_names() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    wanted = project["project"]["dependencies"] + project["project"]["optional-dependencies"]["dev"]
    lock = (ROOT / "deploy/requirements.lock").read_text("utf-8")
    pinned = dict(re.findall(r"^([a-z0-9._-]+)==(\S+)", lock, flags=re.MULTILINE))
    for requirement in [*wanted, "setuptools>=77"]:
        name = re.split(r"[\[<>=~! ]", requirement)[0].lower().replace("_", "-")
        assert name in pinned, f"{name} is not in the lock: run deploy/lock.sh"
    lines = [line for line in lock.splitlines() if line and not line.startswith((" ", "#"))]
    assert len(lines) == len(pinned)
    assert lock.count("--hash=sha256:") >= len(pinned)
