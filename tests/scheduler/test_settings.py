from __future__ import annotations

from pathlib import Path

import pytest

from scheduler.settings import Settings, read_settings


def test_the_environment_goes_before_what_setup_left(tmp_path: Path) -> None:
    (tmp_path / "base-image").write_text("chosen:1\n")
    assert Settings({}, tmp_path).base_image == "chosen:1"
    assert Settings({"APIARY_BASE_IMAGE": "mine:1"}, tmp_path).base_image == "mine:1"
    assert Settings({}, tmp_path).store_url == f"file://{tmp_path}"
    assert Settings({"APIARY_STORE": "s3://bucket"}, tmp_path).store_url == "s3://bucket"


def test_without_setup_no_base_image_is_chosen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("APIARY_BASE_IMAGE", raising=False)
    settings = read_settings()
    assert settings.base_image is None
    assert settings.state == tmp_path / ".apiary"
