"""What a node takes from its surroundings."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest

from workers.config import ConfigError, MetricsAddress, metrics_address, read_config


def test_the_drivers_word_comes_first_then_the_variable_then_a_folder_of_the_users(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("APIARY_WORKSPACE", raising=False)
    own = Path(tempfile.gettempdir()) / f"apiary-{os.geteuid()}" / "work"
    assert read_config(None).workspace == own
    monkeypatch.setenv("APIARY_WORKSPACE", str(tmp_path / "variable"))
    assert read_config(None).workspace == tmp_path / "variable"
    assert read_config(str(tmp_path / "driver")).workspace == tmp_path / "driver"


def test_keys_are_looked_up_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_KEY", "value")
    assert read_config(None).environment["SOME_KEY"] == "value"


def test_cores_and_memory_are_of_this_machine() -> None:
    config = read_config(None)
    assert 1 <= config.cores <= (os.cpu_count() or 1)
    physical = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 1024**2
    assert 64 <= config.memory_mb <= physical


def test_a_control_groups_limit_bounds_the_memory(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    limit, unlimited = tmp_path / "memory.max", tmp_path / "other"
    limit.write_text(f"{512 * 1024**2}\n")
    unlimited.write_text("max\n")
    paths = (unlimited, limit, tmp_path / "missing")
    monkeypatch.setattr("workers.config._CGROUP_LIMITS", paths)
    assert read_config(None).memory_mb == 512


def test_a_door_helper_is_named_by_its_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("APIARY_DOOR", raising=False)
    assert read_config(None).door is None
    monkeypatch.setenv("APIARY_DOOR", "")
    assert read_config(None).door is None
    monkeypatch.setenv("APIARY_DOOR", "/run/apiary/door")
    assert read_config(None).door == Path("/run/apiary/door")


def test_where_metrics_are_served_is_an_address_and_a_port(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("APIARY_NODE_METRICS", "0.0.0.0:9464")
    assert metrics_address(read_config(None).metrics) == MetricsAddress("0.0.0.0", 9464)
    assert metrics_address("[::1]:0") == MetricsAddress("::1", 0)
    assert metrics_address("") is None


@pytest.mark.parametrize("text", ["9464", "localhost:", "::1:9464", "[a]:1", "h:65536", "h:-1"])
def test_another_address_is_refused_with_what_is_expected(text: str) -> None:
    with pytest.raises(ConfigError, match="APIARY_NODE_METRICS: expected address:port"):
        metrics_address(text)
