from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from scheduler.clocks import Reading
from scheduler.doctor import (
    base_finding,
    clock_finding,
    endpoint_findings,
    engine_findings,
    ray_finding,
    store_clock_finding,
    store_finding,
    store_skew_finding,
)
from workers.container.probe import EngineFacts

NOW = datetime(2026, 1, 1, 12, 0, 0, tzinfo=UTC)


def facts(**changes: Any) -> EngineFacts:
    values: dict[str, Any] = {
        "version": "20.10",
        "api_version": "1.41",
        "kernel": "6.1",
        "same_kernel": True,
        "cgroup_version": "2",
        "storage_driver": "overlay2",
        "has_quota": True,
        "has_buildkit": True,
        "door_problem": "",
        "freezer_problem": "",
        "fence_problem": "",
        "root": Path("/var/lib/docker"),
        "free_bytes": 50 * 1024**3,
    }
    return EngineFacts(**{**values, **changes})


def states(**changes: Any) -> dict[str, str]:
    return {each.subject: each.state for each in engine_findings(facts(**changes), 2048)}


def test_a_sound_engine_is_all_well() -> None:
    assert set(states().values()) == {"ok"}


@pytest.mark.parametrize(
    ("changes", "subject", "state"),
    [
        ({"same_kernel": False}, "kernel", "fail"),
        ({"same_kernel": None}, "kernel", "warn"),
        ({"door_problem": "not permitted"}, "sockets in containers", "fail"),
        ({"door_problem": None}, "sockets in containers", "warn"),
        ({"freezer_problem": "read-only"}, "sockets in containers", "warn"),
        ({"fence_problem": "no iptables"}, "public network", "warn"),
        ({"free_bytes": 1024**3}, "disk", "fail"),
        ({"free_bytes": 5 * 1024**3}, "disk", "warn"),
        ({"free_bytes": None}, "disk", "warn"),
    ],
)
def test_each_trouble_has_its_line(changes: dict[str, Any], subject: str, state: str) -> None:
    found = states(**changes)
    assert found.pop(subject) == state
    assert set(found.values()) == {"ok"}


@pytest.mark.parametrize(
    ("version", "state"), [("2.60.0", "ok"), ("2.50.1", "ok"), ("2.49.9", "fail"), (None, "fail")]
)
def test_ray_must_be_new_enough(version: str | None, state: str) -> None:
    assert ray_finding(version).state == state


@pytest.mark.parametrize(
    ("reference", "image", "state", "words"),
    [
        ("python:3.12-slim-bookworm", "sha256:ab", "ok", "(pulled)"),
        ("apiary-base:bookworm", "sha256:ab", "ok", "(local fallback)"),
        ("apiary-base:bookworm", None, "fail", "is not in this engine"),
        (None, None, "fail", "this folder has no .apiary/base-image"),
    ],
)
def test_the_base_image_is_told_honestly(
    reference: str | None, image: str | None, state: str, words: str
) -> None:
    finding = base_finding(reference, image)
    assert finding.state == state
    assert words in finding.found


@pytest.mark.parametrize(
    ("engine_time", "state"),
    [
        ("2026-01-01T12:00:00.123456789Z", "ok"),
        ("2026-01-01T14:00:01+02:00", "ok"),
        ("2026-01-01T12:00:05Z", "fail"),
        ("", "warn"),
    ],
)
def test_clocks_that_part_are_a_fault(engine_time: str, state: str) -> None:
    assert clock_finding(engine_time, NOW).state == state


def test_a_store_is_tried_and_left_as_it_was(tmp_path: Path) -> None:
    assert store_finding(f"file://{tmp_path}").state == "ok"
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_a_folder_that_takes_no_files_is_named_with_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    finding = store_finding(f"file://{tmp_path}/file/store")
    assert finding.state == "fail" and f"{tmp_path}/file/store" in finding.found
    assert "may write" in finding.todo and "bucket" not in finding.todo


@pytest.mark.parametrize("url", ["ftp://x", "file://relative/path"])
def test_a_url_that_names_no_store_is_a_fault(url: str) -> None:
    assert store_finding(url).state == "fail"


def test_key_variables_must_be_set_for_files_that_were_named(tmp_path: Path) -> None:
    path = tmp_path / "live.json"
    path.write_text('{"live": {"provider": "openai", "api_key_env": "LIVE_KEY"}}')
    (missing,) = endpoint_findings([path], {})
    assert (missing.state, missing.found) == ("fail", "not set: LIVE_KEY")
    (tmp_path / "key").write_text("secret\n")
    (mounted,) = endpoint_findings([path], {"LIVE_KEY_FILE": str(tmp_path / "key")})
    assert (mounted.state, mounted.found) == ("ok", "$LIVE_KEY")
    (present,) = endpoint_findings([path], {"LIVE_KEY": "secret"})
    assert (present.state, present.found) == ("ok", "$LIVE_KEY")
    path.write_text("{")
    assert endpoint_findings([path], {})[0].todo == "correct the file"


def test_only_those_are_named_that_want_the_missing_key(tmp_path: Path) -> None:
    path = tmp_path / "live.json"
    path.write_text(
        '{"a": {"provider": "openai", "api_key_env": "A_KEY"},'
        ' "b": {"provider": "openai", "api_key_env": "B_KEY"}}'
    )
    (one,) = endpoint_findings([path], {"A_KEY": "secret"})
    assert one.todo == "export B_KEY before a sweep that uses b"
    (both,) = endpoint_findings([path], {})
    assert both.todo == "export A_KEY and B_KEY before a sweep that uses a, b"


def test_shipped_endpoints_are_only_good_to_know(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "deploy" / "endpoints"
    folder.mkdir(parents=True)
    live = '{"live": {"provider": "openai", "api_key_env": "LIVE_KEY"}}'
    (folder / "live.json").write_text(live)
    (folder / "scripted.json").write_text('{"scripted": {"provider": "scripted"}}')
    found = endpoint_findings([], {})
    assert [(each.subject, each.state) for each in found] == [
        ("endpoints live.json", "warn"),
        ("endpoints scripted.json", "ok"),
    ]


@pytest.mark.parametrize(("ahead", "state"), [(0.4, "ok"), (-4.9, "ok"), (90.0, "fail")])
def test_a_stores_clock_that_parts_from_ours_is_a_fault(ahead: float, state: str) -> None:
    found = store_skew_finding(Reading(ahead, 0.6))
    assert found.state == state
    assert f"{abs(ahead):.1f} s" in found.found


def test_a_store_of_files_has_no_clock(tmp_path: Path) -> None:
    found = store_clock_finding(f"file://{tmp_path}")
    assert (found.state, found.found) == ("ok", "the store has none of its own")
