"""The agent runs on any CPython from 3.9 on, with the standard library and ``nostr_sdk`` alone."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import nostr_sdk
import pytest

from tests.base_image import base_image

ROOT = Path("workers")
SOURCES = sorted(
    [ROOT / "__init__.py", *(ROOT / "agent").rglob("*.py"), *(ROOT / "nostr").rglob("*.py")]
)
NEWER_MODULES = {"tomllib", "asyncio.taskgroups"}


def imported(tree: ast.AST) -> set[str]:
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add(node.module or "")
    return names


@pytest.mark.parametrize("source", SOURCES, ids=str)
def test_a_source_is_python_3_9_and_imports_nothing_foreign(source: Path) -> None:
    tree = ast.parse(source.read_text(encoding="utf-8"), feature_version=(3, 9))
    for name in imported(tree):
        top = name.partition(".")[0]
        own = name.startswith(("workers.agent", "workers.nostr"))
        assert own or top in sys.stdlib_module_names or top == "nostr_sdk", name
        assert name not in NEWER_MODULES
        assert top != "nostr_sdk" or source.name == "sdk.py", "one door to nostr_sdk"


def test_the_wrapper_is_a_shell_script_that_can_be_run() -> None:
    wrapper = ROOT / "agent" / "buzz"
    assert wrapper.read_text().startswith("#!/bin/sh\n")
    assert wrapper.stat().st_mode & 0o111 == 0o111
    assert subprocess.run(["sh", "-n", str(wrapper)], check=False).returncode == 0


@pytest.mark.docker
def test_every_module_loads_in_the_base_image_without_site_packages() -> None:
    modules = [
        ".".join(source.with_suffix("").parts).removesuffix(".__init__")
        for source in SOURCES
        if source.name not in ("__main__.py", "buzz_client.py")
    ]
    program = f"import importlib\nfor name in {modules!r}: importlib.import_module(name)"
    mounts = {
        ROOT / "__init__.py": "workers/__init__.py",
        ROOT / "agent": "workers/agent",
        ROOT / "nostr": "workers/nostr",
        Path(nostr_sdk.__file__).parent: "nostr_sdk",
    }
    options = [
        word
        for source, target in mounts.items()
        for word in ("--volume", f"{source.resolve()}:/opt/apiary/lib/{target}:ro")
    ]
    for python in (["-s", "-S", "-c", program], ["-s", "-m", "workers.agent"]):
        told = subprocess.run(
            ["docker", "run", "--rm", "--network=none", "--label=apiary-test=agent",
             "--cap-drop=ALL", "--env=PYTHONPATH=/opt/apiary/lib", *options,
             base_image(), "python3", *python],
            capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip
        if "-c" in python:
            assert (told.returncode, told.stderr) == (0, "")
        else:
            assert told.returncode == 2
            assert "APIARY_AGENTS" in told.stderr
