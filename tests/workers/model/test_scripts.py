"""Scripts where the world is not as they would have it; the rest is in ``test_profiles``."""

from __future__ import annotations

import json

import pytest

from workers.model.play import Output, Run, Say, next_move
from workers.model.scripts import (
    NOT_SENT,
    NOTHING_TO_DO,
    SENT,
    UNKNOWN,
    WAITING,
    requests_of,
    solve,
)
from workers.model.wake import Wake

MEMORY = "In April 2024, how many customers did we have in total?"
PATH = "Tell me the CHECK_ID and ACTION of `{}` please."
ACCEPTED = Output(json.dumps({"accepted": True}))


def wake(text: str) -> Wake:
    return Wake("e" * 64, "c", "k" * 64, text)


def move(text: str, *outputs: Output) -> Run | Say:
    return next_move(solve([wake(text)]), outputs)


def said(found: Run | Say) -> str:
    return found.command if isinstance(found, Run) else found.text


def test_nobody_asks() -> None:
    assert next_move(solve([]), []) == Say(NOTHING_TO_DO)


def test_reports_are_no_requests() -> None:
    asked, report = wake("A synthesis of (East + West) * factor."), wake("East stands at 17.")
    assert list(requests_of([asked, report, wake("factor: 3")])) == [asked]
    assert list(requests_of([report])) == [report]


def test_a_thread_is_read_once_for_each_message_until_it_is_whole() -> None:
    asked = [wake("A synthesis of (East + West) * factor."), wake("East: 1")]
    looking = next_move(solve(asked), [])
    assert said(looking) == f"buzz messages thread --channel c --event {'e' * 64}"
    part = Output(json.dumps([{"id": "1", "content": "East: 1"}]))
    assert next_move(solve(asked), [part]) == looking
    assert next_move(solve(asked), [part, part]) == Say(WAITING)
    rest = [{"id": "2", "content": "West: 2"}, {"id": "3", "content": "factor: 3"}]
    whole = Output(json.dumps([*json.loads(part.stdout), *rest]))
    assert "value: 9" in said(next_move(solve(asked), [part, whole]))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("one hour", "--visibility open --ttl 3600"),
        ("private, 2 days", "--visibility private --ttl 172800"),
        ("five minutes", "--visibility open --ttl 300"),
        ("forever", "--visibility open"),
    ],
)
def test_a_channel_is_made_as_it_is_described(text: str, words: str) -> None:
    asked = f"A forum channel called `x`, {text}.\nThe role bot: `ab-1`, `ab-2`."
    assert said(move(asked)) == "buzz users get --name ab-"
    made = said(move(asked, Output("[]")))
    assert made == f"buzz channels create --name x --type forum {words}"


@pytest.mark.parametrize(
    ("output", "words"),
    [
        (ACCEPTED, SENT),
        (Output("", 1), NOT_SENT),
        (Output(json.dumps({"accepted": False})), NOT_SENT),
        (Output("[]"), NOT_SENT),
    ],
)
def test_last_words_tell_what_became_of_the_message(output: Output, words: str) -> None:
    assert move("Hello.", output) == Say(words)


def test_no_memory_has_the_answer() -> None:
    assert UNKNOWN in said(move(MEMORY, Output("")))
    assert "buzz mem get other" in said(move(MEMORY, Output("other\t1\tx\n")))
    assert UNKNOWN in said(move(MEMORY, Output("other\t1\tx\n"), Output("nothing")))


@pytest.mark.parametrize(
    ("path", "command"),
    [
        ("~/a b.c/d-e/SKILL.md", None),
        ("~/.x/y/SKILL.md", 'cat "$HOME"/.x/y/SKILL.md'),
        ("/home/buzz/.x/SKILL.md", "cat /home/buzz/.x/SKILL.md"),
    ],
)
def test_the_named_path_is_read(path: str, command: str | None) -> None:
    found = said(move(PATH.format(path)))
    assert found == command if command is not None else "cat" not in found


def test_a_file_that_lacks_what_is_asked() -> None:
    assert UNKNOWN in said(move(PATH.format("/x/SKILL.md"), Output("", 1)))


def test_people_that_cannot_be_told_apart() -> None:
    text = "Two have the display name Ada Lovelace. Tell the one with routing code XY-1 `XY-1 ok`."
    name, command = text, said(move(text))
    if command.startswith("buzz users"):
        rows = json.dumps([{"about": "XY-1"}, {"about": "XY-1"}])
        assert UNKNOWN in said(move(name, Output(rows)))
        assert UNKNOWN in said(move(name, Output("not json")))
