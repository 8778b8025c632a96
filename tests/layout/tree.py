"""The project's own files, as the layout tests see them."""

from __future__ import annotations

import ast
import functools
import os
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("scheduler", "workers")


LEFT_OUT = {"__pycache__", "build", "dist"}
DOT_FOLDERS = {".ci"}
"""Other folders that begin with a dot are caches, environments and state."""


@functools.cache
def modules() -> tuple[Path, ...]:
    """Every module of both packages, relative to the project."""
    found = (path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
    return tuple(sorted(path.relative_to(ROOT) for path in found))


def text_files() -> Iterator[Path]:
    """Every file that is part of the project and is text, relative to it."""
    for folder, folders, files in os.walk(ROOT):
        folders[:] = sorted(name for name in folders if _is_ours(name))
        for name in sorted(files):
            path = Path(folder) / name
            if not path.is_symlink() and b"\0" not in path.read_bytes()[:4096]:
                yield path.relative_to(ROOT)


@functools.cache
def parsed(module: Path) -> ast.Module:
    """A module's syntax tree."""
    return ast.parse((ROOT / module).read_text("utf-8"))


def first_line(module: Path) -> str:
    """The first line of a module's docstring; empty if it has none."""
    return (ast.get_docstring(parsed(module)) or "").split("\n")[0]


@functools.cache
def imports(module: Path) -> frozenset[str]:
    """The top-level names of all that a module imports, wherever in it."""
    names = set()
    for node in ast.walk(parsed(module)):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module is not None and node.level == 0:
            names.add(node.module.partition(".")[0])
    return frozenset(names)


def _is_ours(folder: str) -> bool:
    if folder.startswith("."):
        return folder in DOT_FOLDERS
    return folder not in LEFT_OUT and not folder.endswith(".egg-info")
