"""Tests lie where what they test lies."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.layout.tree import PACKAGES, ROOT, modules

FOLDERS = sorted({module.parent for module in modules() if len(module.parts) > 2})


@pytest.mark.parametrize("folder", FOLDERS, ids=str)
def test_every_folder_has_its_tests(folder: Path) -> None:
    beside = ROOT / "tests" / folder
    above = ROOT / "tests" / folder.parent / f"test_{folder.name}.py"
    shared = ROOT / "tests" / "interfaces"
    found = list(beside.glob("test_*.py")) or above.is_file()
    # A family of implementations has its suite with the interfaces.
    assert found or (folder.name == "storage" and (shared / "test_store.py").is_file())


@pytest.mark.parametrize("package", PACKAGES)
def test_every_folder_of_tests_has_something_to_test(package: str) -> None:
    for test in (ROOT / "tests" / package).rglob("test_*.py"):
        folder = test.parent.relative_to(ROOT / "tests")
        assert (ROOT / folder).is_dir() or (ROOT / folder.parent).is_dir(), test
