"""The kit's own words, where no task's transcript pins them."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import pytest

from tests.manifests.task_verifiers import MANIFESTS, load

load("user-mention")
if str(MANIFESTS) not in sys.path:
    sys.path.append(str(MANIFESTS))

from verifier_kit import figures, reading, verdict  # noqa: E402
from verifier_kit.evidence import Evidence  # noqa: E402

LONG = 60_000


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("352,345", [352_345]),
        ("-3 and - 4", [-3, 4]),
        ("a1 _2 33 é4 ②", [33, 4]),
        ("1.5. 2.", [1.5, 2]),
        ("1,,2,", [12]),
        ("5-3", [5, 3]),
        ("１２٣", [123]),
        ("v１２", [2]),
        ("$7 -$8 $-9", [7, 8, -9]),
        ("1e5 0x10", [1, 0]),
        ("no", []),
    ],
)
def test_numbers(text: str, found: list[float]) -> None:
    assert list(figures.numbers(text)) == found


def test_amounts_take_the_dollar_in() -> None:
    assert list(figures.amounts("$7 -$8 $-9 US$10")) == [7, -8, -9, 10]


@pytest.mark.parametrize(
    ("text", "told"), [("86", True), ("88.0", True), ("88.1", False), ("85.99", False)]
)
def test_one_off_is_inclusive(text: str, told: bool) -> None:
    assert figures.has_amount(text, 87) is told


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("ALPHA: 346", True),
        ("alpha\n346.", True),
        ("ALPHA346", False),
        ("ALPHA 1 346", False),
        ("ALPHA 3467", False),
        ("ALPHA 346５", False),
        ("346 ALPHA", False),
        ("ALPHA 1, ALPHA 346", True),
    ],
)
def test_label_and_whole_figure(text: str, told: bool) -> None:
    assert figures.has_labelled(text, "ALPHA", "346", whole=True) is told


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("=87", True),
        ("final87", True),
        ("Forecast, then: -87.5", True),
        ("results 87", True),
        ("final 1 87", False),
        ("final 870", False),
        ("87 final", False),
    ],
)
def test_conclusion(text: str, told: bool) -> None:
    assert figures.has_concluded(text, ("final", "result", "forecast", "="), "87") is told


def test_time_is_linear_in_any_text() -> None:
    started = time.process_time()
    for text in ("north" * LONG, "north17" * LONG, "a b." * LONG, "\n" * LONG, "1 " * LONG):
        figures.has_labelled(text, "north", "18", whole=False)
        figures.has_concluded(text, ("north",), "18")
        figures.has_in_sentence(text, "a b", "c")
        figures.has_amount(text, 5)
    assert time.process_time() - started < 10


def test_integers_are_bounded_where_python_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(sys, "get_int_max_str_digits")
    assert reading.parse_json('{"a": [1, -20, 2.5]}') == {"a": [1, -20, 2.5]}
    with pytest.raises(reading.MalformedError, match="4300 digits"):
        reading.parse_json("9" * 4301)


def test_paired_surrogates_are_text() -> None:
    assert reading.parse_json('"\\ud83d\\ude00"') == "😀"


@pytest.mark.parametrize("text", ['"\\ud83d"', '{"\\udc00": 1}', '"\\ude00\\ud83d"'])
def test_lone_surrogates_are_not(text: str) -> None:
    with pytest.raises(reading.MalformedError, match="surrogate"):
        reading.parse_json(text)


def test_details_stay_small_and_plain() -> None:
    seen = verdict.shown([1, 1.5, float("inf"), 10**30, "a" * 10_000, None, True, {}, [[]]] * 1000)
    assert len(seen) == verdict.MAX_SHOWN_ROWS
    assert seen[:4] == [1, 1.5, "beyond range", "beyond range"]
    assert len(json.dumps(seen, allow_nan=False)) < 1024 * 1024


def test_details_name_what_was_looked_at(tmp_path: Path) -> None:
    told = load("user-mention").VERIFIER.judge({"task_event_id": {"a": []}})
    assert told.details["task_event_id"] == "a dict"
    assert told.details["agent_message_ids"] == []


def test_absent_parts_are_absent() -> None:
    seen = Evidence({})
    assert not seen.messages
    assert not seen.directory
    assert not seen.agent_messages
    assert seen.agent is None
    assert seen.final is None
    assert not seen.is_complete(None)


def test_null_ids_do_not_make_a_task_event() -> None:
    seen = Evidence({"messages": [{}], "task_event_id": None})
    assert not seen.has_task_event_once


def test_a_fault_of_the_page_fails_closed() -> None:
    def broken(_: Evidence) -> bool:
        raise ZeroDivisionError("secret text")

    told = verdict.Verifier((broken,), lambda _: {}).judge({})
    assert told.reward == {"broken": 0.0, "reward": 0.0}
    assert told.details["error"].startswith("ZeroDivisionError")
