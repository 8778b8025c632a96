from __future__ import annotations

from pathlib import Path

import pytest

from scheduler.manifest.roots import find_manifests, shipped_endpoints


def test_the_nearest_folder_with_a_kit_is_the_manifests_folder(tmp_path: Path) -> None:
    manifests = tmp_path / "data"
    (manifests / "verifier_kit").mkdir(parents=True)
    (manifests / "tasks" / "alpha").mkdir(parents=True)
    for start in (manifests, manifests / "tasks", manifests / "tasks" / "alpha"):
        assert find_manifests(start) == manifests.resolve()
    assert shipped_endpoints(manifests) == tmp_path / "deploy" / "endpoints"


def test_elsewhere_it_is_that_of_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert find_manifests(tmp_path / "tasks") == Path("manifests")


def test_below_the_working_directory_it_is_written_short(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "manifests" / "verifier_kit").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    assert find_manifests(Path("manifests")) == Path("manifests")
    assert shipped_endpoints(Path("manifests")) == Path("deploy/endpoints")
    monkeypatch.chdir(tmp_path / "manifests")
    assert shipped_endpoints(find_manifests(Path())) == tmp_path / "deploy" / "endpoints"
