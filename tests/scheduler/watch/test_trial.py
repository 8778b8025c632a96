"""One attempt, followed from its wait to its end."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest
from rich.cells import cell_len

from scheduler.watch.trial_reader import SILENT_S, Subject, TrialMoment, TrialReader
from scheduler.watch.trial_screen import trial_lines, trial_screen
from tests.scheduler.cli.builders import write_try
from tests.scheduler.report.builders import record
from tests.scheduler.report.evidence import AGENT, TASK, USER, conversation, message
from tests.scheduler.watch.builders import (
    ATTEMPT,
    SWEEP,
    claim,
    drawn,
    put,
    sweep_document,
    trial_document,
)
from tests.workers.store_doubles import Moody, file_store
from workers.contract.live import WatchWish, live_trial_key, watched_key
from workers.contract.outcome import Cause
from workers.contract.result import try_prefix
from workers.storage import Store

SUBJECT = Subject(SWEEP, ATTEMPT, "buzz-native/greet", "solver", 1)


def show(store: Store, **changes: Any) -> None:
    store.put(live_trial_key(SWEEP, ATTEMPT), trial_document(**changes).to_json().encode())


def wish(store: Store) -> WatchWish:
    key = watched_key(SWEEP, ATTEMPT)
    return WatchWish.from_json(store.get(key), key)


def test_from_its_wait_to_its_end(tmp_path: Path) -> None:
    store, now = file_store(tmp_path), [0.0]
    claim(store)
    with TrialReader(store, SUBJECT, clock=lambda: now[0]) as reader:
        assert (reader.look().standing, wish(store).beat) == ("waiting", 1)
        put(store, sweep_document())
        moment = reader.look()
        assert moment.standing == "begins"
        assert moment.running is not None
        assert moment.running.phase == "drive"
        assert wish(store).beat == 1
        now[0] += 3.0
        show(store)
        assert (reader.look().standing, wish(store).beat) == ("shown", 2)
        store.delete(live_trial_key(SWEEP, ATTEMPT))
        lost = record(Cause.CONTAINER_LOST, ATTEMPT, 1, sweep=SWEEP)
        write_try(store, lost)
        put(store, sweep_document(number=2, running=[]))
        moment = reader.look()
        assert (moment.standing, moment.is_final) == ("ended", False)
        show(store, number=1, **{"try": "1-5"})
        assert reader.look().standing == "shown"
        store.delete(live_trial_key(SWEEP, ATTEMPT))
        write_try(store, record(Cause.WRONG, ATTEMPT, 2, sweep=SWEEP), conversation())
        moment = reader.look()
        assert (moment.standing, moment.is_final) == ("ended", True)
        assert moment.evidence is not None
    assert not store.exists(watched_key(SWEEP, ATTEMPT))


def test_another_watchers_wish_is_left(tmp_path: Path) -> None:
    store = file_store(tmp_path)
    with TrialReader(store, SUBJECT) as one, TrialReader(store, SUBJECT) as other:
        one.look()
        other.look()
        other_wish = wish(store)
        one.__exit__(None, None, None)
        assert wish(store) == other_wish
    assert not store.exists(watched_key(SWEEP, ATTEMPT))


def test_what_a_dead_node_left_is_not_shown_for_ever(tmp_path: Path) -> None:
    store, now = file_store(tmp_path), [0.0]
    show(store)
    with TrialReader(store, SUBJECT, clock=lambda: now[0]) as reader:
        assert reader.look().standing == "shown"
        now[0] += SILENT_S + 1
        moment = reader.look()
    assert (moment.standing, moment.is_driven) == ("waiting", False)


def test_a_store_that_takes_no_wish_says_so(tmp_path: Path) -> None:
    store = file_store(tmp_path)
    moody = Moody(store)
    with TrialReader(cast(Store, moody), SUBJECT) as reader:
        reader.look()
        moody.refuses = True
        assert reader.look().fault == "the store is down"


def test_the_screen_has_who_writes_threads_tools_and_tokens() -> None:
    moment = TrialMoment(SUBJECT, "shown", live=trial_document())
    text = "\n".join(drawn(trial_screen(moment, 100, 30), 100))
    for expected in (
        "greet × solver #1  abababababab of demo",
        "runs: drive, 12 s, try 1-4 on n1",
        "solo-1  1 turn, 0 ended; 3 calls (0 failed), 2 for tools; 4100 tokens in, 80 out, $0.0020",
        "2 messages: Ada Lovelace 1, solo-1 1",
        "notifies @solo-1",
        "    ↳ solo-1",
        "    It is 4.",
        "solo-1: turn starting",
        "q leaves; the trial is not disturbed",
    ):
        assert expected in text, expected
    assert any("runs: drive" in line for line in trial_lines(moment))


LONG = "word " * 4000
MANY = [message(f"{n:064x}", USER if n % 2 else AGENT, LONG, at=n) for n in range(60)]
HOSTILE = message(TASK, USER, "\x1b[2J\x07 [red]x\u202e 漢字漢字漢字漢字 \r\n" * 40, at=1)


@pytest.mark.parametrize(
    ("width", "height"), [(80, 24), (200, 60), (40, 12), (20, 6), (5, 3), (1, 1)]
)
@pytest.mark.parametrize("spoken", [MANY, [HOSTILE]], ids=["many", "hostile"])
def test_it_fills_any_terminal_exactly(width: int, height: int, spoken: list[Any]) -> None:
    channel = conversation(*spoken).model_dump(mode="json")
    moment = TrialMoment(SUBJECT, "shown", live=trial_document(channel=channel))
    lines = drawn(trial_screen(moment, width, height), width)
    assert len(lines) == height
    assert all(cell_len(line) <= width for line in lines)
    assert not any("\x1b" in line or "\x07" in line or "\u202e" in line for line in lines)


def test_the_end_of_the_conversation_is_what_is_seen() -> None:
    spoken = [message(f"{n:064x}", USER, f"text {n}", at=n) for n in range(60)]
    channel = conversation(*spoken).model_dump(mode="json")
    moment = TrialMoment(SUBJECT, "shown", live=trial_document(channel=channel))
    text = "\n".join(drawn(trial_screen(moment, 80, 24), 80))
    assert "text 59" in text
    assert "text 10" not in text
    everything = "\n".join(drawn(trial_screen(moment, 80, None), 80))
    assert "text 10" in everything


def test_evidence_that_is_broken_leaves_the_record(tmp_path: Path) -> None:
    store = file_store(tmp_path)
    write_try(store, record(Cause.NONE, ATTEMPT, 1, sweep=SWEEP), conversation())
    key = f"{try_prefix(SWEEP, ATTEMPT, '1-1')}/evidence.json"
    store.put(key, b'{"half')
    with TrialReader(store, SUBJECT) as reader:
        moment = reader.look()
    assert (moment.standing, moment.is_final, key in moment.fault) == ("ended", True, True)
    assert "pass" in drawn(trial_screen(moment, 80, 10), 80)[1]


def test_no_field_of_a_document_moves_a_cursor() -> None:
    trick = "\x1b[2J\r\u202e"
    live = trial_document(phase=trick, node=trick, log=[{"agent": trick, "text": trick}])
    lines = drawn(trial_screen(TrialMoment(SUBJECT, "shown", live=live, fault=trick), 200, 30), 200)
    assert not set("\x1b\r\u202e") & set("".join(lines))
