from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.workers.agent.worlds import buzz
from workers.agent.commands.arguments import Arguments, Command, Option, Positional, parse
from workers.agent.commands.errors import CommandError
from workers.agent.commands.program import COMMANDS

COMMAND = Command(
    ("thing", "do"),
    "Does it.",
    lambda _call, _args: None,
    (
        Option("--content", "Text", "TEXT", required=True),
        Option("--mention", "Key", "KEY", repeats=True),
        Option("--limit", "N", "N", number=True),
        Option("--kind", "Kind", "KIND", choices=("a", "b")),
        Option("--broadcast", "Flag"),
    ),
    (Positional("SLUG", "Name"),),
)


def read(*words: str) -> dict[str, list[str]]:
    return parse(COMMAND, words).values


@pytest.mark.parametrize(
    ("words", "values"),
    [
        (["--content", "x", "s"], {"--content": ["x"], "SLUG": ["s"]}),
        (["s", "--content=x"], {"--content": ["x"], "SLUG": ["s"]}),
        (["s", "--content=- item"], {"--content": ["- item"], "SLUG": ["s"]}),
        (["s", "--content", "-"], {"--content": ["-"], "SLUG": ["s"]}),
        (["s", "--content", ""], {"--content": [""], "SLUG": ["s"]}),
        (["s", "--content="], {"--content": [""], "SLUG": ["s"]}),
        (["--content=a=b", "--", "--x"], {"--content": ["a=b"], "SLUG": ["--x"]}),
        (
            ["s", "--mention", "k", "--content", "x", "--mention", "l", "--broadcast"],
            {"--mention": ["k", "l"], "--content": ["x"], "--broadcast": [""], "SLUG": ["s"]},
        ),
        (["-", "--content=x", "--format", "compact"],
         {"SLUG": ["-"], "--content": ["x"], "--format": ["compact"]}),
    ],
)  # fmt: skip
def test_what_is_read(words: list[str], values: dict[str, list[str]]) -> None:
    assert read(*words) == values


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["s"], "--content <TEXT> is missing"),
        (["--content", "x"], "<SLUG> is missing"),
        (["s", "--content"], "needs a value"),
        (["s", "--content", "- item"], "write it as --content="),
        (["s", "--content", "--broadcast"], "write it as --content="),
        (["s", "--content", "-5"], "write it as --content="),
        (["s", "--content", "x", "--content", "y"], "given twice"),
        (["s", "--content=x", "--broadcast=1"], "takes no value"),
        (["s", "--content=x", "--limit", "ten"], "whole number"),
        (["s", "--content=x", "--limit", "\u0663"], "whole number"),
        (["s", "--content=x", "--kind", "c"], "one of a, b"),
        (["s", "--content=x", "--mentions", "k"], "there is --mention"),
        (["s", "--cont=x"], "unexpected argument '--cont'"),
        (["s", "t", "--content=x"], "unexpected argument 't'"),
        (["s", "-x", "--content=x"], "unexpected argument '-x'"),
    ],
)
def test_what_is_refused(words: list[str], reason: str) -> None:
    with pytest.raises(CommandError, match=reason) as caught:
        read(*words)
    assert caught.value.exit_code == 1


@given(st.lists(st.sampled_from(["--content", "--x", "-", "--", "s", "--mention=", "", "-1"])))
def test_any_words_are_arguments_or_a_user_error(words: list[str]) -> None:
    try:
        assert isinstance(parse(COMMAND, words), Arguments)
    except CommandError as error:
        assert error.category == "user_error"


def test_every_command_has_help_and_names_its_options() -> None:
    for path, command in COMMANDS.items():
        told = buzz(*path, "--help", variables={})
        assert told.code == 0
        for option in command.options:
            assert option.name in told.output


@pytest.mark.parametrize("words", [("--help",), ("-h",), ("help",)])
def test_the_overview_names_every_command(words: tuple[str, ...]) -> None:
    told = buzz(*words, variables={})
    assert told.code == 0
    assert all(f"buzz {' '.join(path)}" in told.output for path in COMMANDS)


def test_the_help_of_a_group() -> None:
    told = buzz("messages", "--help", variables={})
    assert "buzz messages send" in told.output
    assert "buzz channels" not in told.output


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (("messages", "sned"), "messages send"),
        (("message", "send"), "messages send"),
        (("channels", "invite"), "See buzz --help"),
        (("messages",), "See buzz --help"),
        ((), "See buzz --help"),
    ],
)
def test_an_unknown_command_is_a_user_error(words: tuple[str, ...], hint: str) -> None:
    told = buzz(*words, variables={})
    assert told.code == 1
    assert told.fault["error"] == "user_error"
    assert told.fault["retryable"] is False
    assert hint in told.fault["message"]
    assert told.output == ""


def test_global_options_stand_before_or_after_the_command() -> None:
    before = buzz("--private-key", "zz", "users", "get", variables={})
    after = buzz("users", "get", "--private-key=zz", variables={})
    assert before.code == after.code == 3
    assert before.fault["error"] == after.fault["error"] == "key_error"
    assert "zz" not in before.errors
