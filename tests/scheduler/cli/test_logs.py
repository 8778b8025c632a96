from __future__ import annotations

import json

import pytest

from scheduler.claim_format import DriverBeat, beat_key
from scheduler.claims import SILENT_S
from scheduler.cli import logs, run_cli
from scheduler.cli.exits import Exit
from tests.scheduler.builders import SWEEP
from tests.scheduler.cli.builders import World
from tests.scheduler.test_journal_reading import A, B, put
from tests.scheduler.watch.builders import claim
from workers.contract.result import try_prefix


@pytest.fixture
def told(world: World) -> World:
    store = world.store
    put(store, "driver", 0, 1, attempt=A, node="n-1", text="told \x1b[2J to lease")
    put(store, "driver", 1, 5, event="note", text="the clock of node n-1 is 90 s ahead of this one")
    put(store, "n-1", 0, 2, attempt=A, phase="drive")
    put(store, "n-2", 0, 3, attempt=B, level="warning")
    store.put(f"{try_prefix(SWEEP, A, '1-1')}/logs/agents/solo-1.stdout.log", b"x")
    return world


def test_for_people_it_is_a_line_each(told: World, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_cli(["logs"]) == Exit.DONE
    shown = capsys.readouterr()
    lines = shown.out.splitlines()
    assert [line[17:23] for line in lines] == ["01.000", "02.000", "03.000", "05.000"]
    assert "\x1b" not in shown.out
    assert "90 s ahead of this one: its lines stand where that clock puts them" in shown.err


def test_of_one_attempt_its_logs_are_named(told: World, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_cli(["logs", SWEEP, "--attempt", A[:8]]) == Exit.DONE
    shown = capsys.readouterr()
    assert len(shown.out.splitlines()) == 2
    assert f"{A}/1-1/logs/agents/solo-1.stdout.log" in shown.err
    assert run_cli(["logs", SWEEP, "--attempt", "xyz"]) == Exit.USAGE


def test_json_and_one_node(told: World, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_cli(["logs", "--node", "n-1", "--json"]) == Exit.DONE
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(line["source"], line["attempt"]) for line in lines] == [("driver", A), ("n-1", A)]


def test_a_node_without_a_line_is_told(told: World, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_cli(["logs", "--node", "n-9"]) == Exit.DONE
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "have no line of node 'n-9'" in shown.err


def test_following_ends_when_no_driver_is_at_work(
    told: World, capsys: pytest.CaptureFixture[str]
) -> None:
    claim(told.store)
    told.store.put(beat_key(SWEEP, 1), DriverBeat(beat=1, ended=True).to_json().encode())
    assert run_cli(["logs", "--follow"]) == Exit.DONE
    assert len(capsys.readouterr().out.splitlines()) == 4


def test_following_a_driver_that_died_elsewhere_ends_with_its_silence(
    told: World, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]

    class Clock:
        monotonic = staticmethod(lambda: now[0])

        @staticmethod
        def sleep(seconds: float) -> None:
            now[0] += seconds

    monkeypatch.setattr(logs, "time", Clock)
    claim(told.store)
    told.store.put(beat_key(SWEEP, 1), DriverBeat(beat=7).to_json().encode())
    assert run_cli(["logs", "--follow"]) == Exit.DONE
    assert SILENT_S < now[0] < 2 * SILENT_S
    assert len(capsys.readouterr().out.splitlines()) == 4
