"""How a script acts: it asks for commands, sees their output, and ends its turn. Pure.

A script is a generator, so a request needs no state on the server: the conversation holds the
outputs of all earlier commands, and the script is played again up to the first one that it
does not hold.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Post:
    """A message that a script sends."""

    channel: str
    content: str
    reply_to: str | None = None
    mentions: tuple[str, ...] = ()

    def command(self) -> str:
        """The shell command that sends it; the content goes through standard input."""
        words = ["buzz", "messages", "send", "--channel", self.channel]
        if self.reply_to is not None:
            words += ["--reply-to", self.reply_to]
        for key in self.mentions:
            words += ["--mention", key]
        words += ["--content", "-"]
        return f"printf %s {shlex.quote(self.content)} | {shlex.join(words)}"


@dataclass(frozen=True)
class Output:
    """What a command gave."""

    stdout: str
    exit_code: int = 0


Step = str | Post
"""A command for the shell, or a message."""

Script = Generator[Step, Output, str]
"""Yields steps, is sent their output, returns its last words."""

Alteration = Generator[Step, Output, Output]
"""Yields what is done in the place of a step, returns what the step is told to have given."""


@dataclass(frozen=True)
class Run:
    """The model's move: a command for the shell."""

    command: str


@dataclass(frozen=True)
class Say:
    """The model's move: a text, which ends the turn."""

    text: str


def read_output(text: str) -> Output:
    """A tool result: the JSON object of a Buzz shell tool, or plain text."""
    try:
        told = json.loads(text)
    except ValueError:
        return Output(text)
    if not isinstance(told, dict) or not isinstance(told.get("stdout"), str):
        return Output(text)
    code = told.get("exit_code")
    return Output(told["stdout"], code if isinstance(code, int) else 0)


def altered(script: Script, alter: Callable[[Step], Alteration]) -> Script:
    """A script with something else in the place of each of its steps."""
    try:
        step = next(script)
        while True:
            output = yield from alter(step)
            step = script.send(output)
    except StopIteration as end:
        return str(end.value)


def next_move(script: Script, outputs: Iterable[Output]) -> Run | Say:
    """The script's move after the outputs seen so far."""
    try:
        step = next(script)
        for output in outputs:
            step = script.send(output)
    except StopIteration as end:
        return Say(str(end.value))
    return Run(step.command() if isinstance(step, Post) else step)
