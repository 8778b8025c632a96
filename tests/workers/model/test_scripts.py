"""Scripts where the world is not as they would have it; the rest is in ``test_profiles``."""

from __future__ import annotations

import json

import pytest

from workers.model.play import Output, Run, Say, next_move
from workers.model.scripts import NOT_SENT, NOTHING_TO_DO, SENT, UNKNOWN, solve
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
    assert next_move(solve([wake("Ledger: North stands at 17.")]), []) == Say(NOTHING_TO_DO)


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
