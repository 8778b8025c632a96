from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from scheduler.manifest import ManifestError
from scheduler.series.schedule_file import load_schedule, load_schedules, seconds
from tests.layout.tree import ROOT
from tests.scheduler.manifest.builders import write_world
from tests.scheduler.series.builders import SCHEDULE, schedule, write_schedule


@pytest.fixture
def root(tmp_path: Path) -> Path:
    write_world(tmp_path)
    return tmp_path


def test_defaults(root: Path) -> None:
    file = schedule(root).file
    assert (file.overlap, file.catch_up, file.grace, file.deadline) == ("skip", "last", "15m", "1d")
    assert file.gate.baseline == "last_good"
    assert schedule(root).sweep_path.is_file()


def test_the_shipped_schedules_are_sound() -> None:
    found = load_schedules((ROOT / "manifests" / "schedules",))
    assert [each.series for each in found] == ["nightly-regression", "weekly-workflow"]


@pytest.mark.parametrize(
    ("fields", "more", "told"),
    [
        ({"cron": '"30 2 * *"'}, "", ":4: cron: expected five fields"),
        ({"cron": '"61 2 * * *"'}, "", ":4: cron: Bad minute"),
        ({"zone": "Europe/Berln"}, "", ":5: zone: 'Europe/Berln' is no time zone"),
        ({"zone": "Europe/Berln"}, "", "(did you mean 'Europe/Berlin'?)"),
        ({"sweep": "../sweeps/smal.yaml"}, "", ":3: sweep: there is no file"),
        ({"sweep": "../sweeps/smal.yaml"}, "", "small.yaml'?)"),
        ({"series": "Nightly"}, "", ":2: series: expected text of the form"),
        ({}, "overlp: skip\n", ":6: overlp: unknown field"),
        ({}, "overlp: skip\n", "(did you mean 'overlap'?)"),
        ({}, "overlap: wait\n", ":6: overlap: expected 'skip', 'queue' or 'cancel'"),
        ({}, "jitter: 5\n", ":6: jitter: expected text"),
        ({}, "jitter: 5 minutes\n", ":6: jitter: expected text of the form"),
        ({}, "catch_up: all\n", ":6: catch_up: catch_up 'all' needs overlap 'queue'"),
        ({}, 'deadline: "0"\n', ":6: deadline: deadline must be above 0"),
        ({}, "gate: {baseline: yesterday}\n", "gate.baseline: expected text of the form"),
        ({}, "gate: {margin: 5}\n", "gate.margin: expected a number less than 1"),
        ({}, "notify: {webhook: {}}\n", "url or url_env is needed"),
        ({}, "notify: {webhook: {url: ftp://x}}\n", "url: url must be http"),
        ({}, "notify: {webhook: {url: 'https://u:p@x/'}}\n", "without a password"),
        ({}, "notify: {events: []}\n", "notify.events: expected at least 1"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(
    root: Path, fields: dict[str, str], more: str, told: str
) -> None:
    with pytest.raises(ManifestError) as caught:
        schedule(root, more, **fields)
    assert told in str(caught.value)


def test_all_faults_of_all_files_are_told_at_once(root: Path) -> None:
    write_schedule(root, SCHEDULE.replace("30 2", "99 2"), "a")
    write_schedule(root, SCHEDULE.replace("Europe/Berlin", "Nowhere"), "b")
    with pytest.raises(ManifestError) as caught:
        load_schedules((root / "manifests" / "schedules",))
    assert "a.yaml:4: cron" in str(caught.value) and "b.yaml:5: zone" in str(caught.value)


def test_a_series_may_be_there_once(root: Path) -> None:
    write_schedule(root, SCHEDULE, "a")
    write_schedule(root, SCHEDULE, "b")
    with pytest.raises(ManifestError, match="'nightly' is the series of"):
        load_schedules((root / "manifests" / "schedules",))


def test_the_usual_folder_may_be_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ManifestError, match="name a schedule file"):
        load_schedules(())


def test_a_folder_without_schedules_is_said(tmp_path: Path) -> None:
    with pytest.raises(ManifestError, match="no schedule"):
        load_schedules((tmp_path,))
    with pytest.raises(ManifestError, match="no such file"):
        load_schedule(tmp_path / "x.yaml")


@pytest.mark.parametrize(
    ("text", "time"),
    [
        ("0", timedelta()),
        ("90s", timedelta(seconds=90)),
        ("15m", timedelta(minutes=15)),
        ("6h", timedelta(hours=6)),
        ("3d", timedelta(days=3)),
    ],
)
def test_durations(text: str, time: timedelta) -> None:
    assert seconds(text) == time
