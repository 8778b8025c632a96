"""``workers.nostr`` is mounted into task containers: CPython 3.9, standard library, one binary."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import workers.nostr

FILES = sorted(Path(workers.nostr.__path__[0]).glob("*.py"))
LIGHT = ("errors", "strict_json", "filters", "tags", "curve")


def imports(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_module_is_python_3_9_and_imports_nothing_foreign(path: Path) -> None:
    tree = ast.parse(path.read_text(), feature_version=(3, 9))
    for name in imports(tree):
        top = name.split(".")[0]
        assert (
            top in sys.stdlib_module_names
            or name.startswith("workers.nostr")
            or (top == "nostr_sdk" and path.stem == "sdk")
        ), name


def test_the_light_modules_do_not_load_the_binary() -> None:
    wanted = ", ".join(f"workers.nostr.{name}" for name in LIGHT)
    code = f"import sys, {wanted}; print('nostr_sdk' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
