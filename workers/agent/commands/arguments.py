"""Command lines: declared options, read the way Buzz's own parser reads them.

A value that begins with a hyphen is refused after a space (``--content=-x`` and a lone ``-`` are
fine), options are not abbreviated, and one that does not repeat stands once.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from workers.agent.commands.errors import user_error

if TYPE_CHECKING:
    from workers.agent.commands.call import Call


@dataclass(frozen=True)
class Option:
    """One ``--name`` of a command."""

    name: str
    help: str
    value: str = ""
    """What the value is called in the help; empty: a flag without value."""
    required: bool = False
    repeats: bool = False
    number: bool = False
    """Whether the value is a whole number from 0 on."""
    choices: tuple[str, ...] = ()


@dataclass(frozen=True)
class Positional:
    """An argument without a name, always required."""

    name: str
    help: str


@dataclass(frozen=True)
class Command:
    """One command, and the function that does it."""

    path: tuple[str, ...]
    """For example ``("messages", "send")``."""
    help: str
    run: Callable[[Call, Arguments], None]
    options: tuple[Option, ...] = ()
    positionals: tuple[Positional, ...] = ()


@dataclass
class Arguments:
    """What one command line says."""

    values: dict[str, list[str]] = field(default_factory=dict)
    """By option name, or by a positional's name."""

    def has(self, name: str) -> bool:
        """Whether an option was given."""
        return name in self.values

    def text(self, name: str) -> str:
        """The value of something that is required."""
        return self.values[name][0]

    def optional(self, name: str) -> str | None:
        """The value of an option, or None."""
        found = self.values.get(name)
        return found[0] if found else None

    def all(self, name: str) -> list[str]:
        """All values of an option that repeats."""
        return self.values.get(name, [])

    def number(self, name: str, default: int) -> int:
        """The value of an option declared as a number."""
        found = self.optional(name)
        return default if found is None else int(found)


GLOBAL_OPTIONS = (
    Option("--relay", "Relay address [env: BUZZ_RELAY_URL]", "URL"),
    Option("--private-key", "Key, hex or nsec [env: BUZZ_PRIVATE_KEY]", "KEY"),
    Option("--auth-tag", "Owner's attestation [env: BUZZ_AUTH_TAG]", "JSON"),
    Option("--format", "Output form", "FORM", choices=("json", "compact")),
)


def parse(command: Command, words: Sequence[str]) -> Arguments:
    """Reads the words after a command's name.

    Raises:
        CommandError: a ``user_error`` that names the word.
    """
    known = {option.name: option for option in (*command.options, *GLOBAL_OPTIONS)}
    arguments = Arguments()
    places = list(command.positionals)
    rest = list(words)
    options_ended = False
    while rest:
        word = rest.pop(0)
        if word == "--" and not options_ended:
            options_ended = True
        elif options_ended or word == "-" or not word.startswith("-"):
            if not places:
                raise _wrong(command, f"unexpected argument {word!r}")
            arguments.values[places.pop(0).name] = [word]
        else:
            _take_option(command, known, word, rest, arguments)
    if places:
        raise _wrong(command, f"<{places[0].name}> is missing")
    for option in known.values():
        if option.required and not arguments.has(option.name):
            raise _wrong(command, f"{option.name} <{option.value}> is missing")
    return arguments


def _take_option(
    command: Command,
    known: dict[str, Option],
    word: str,
    rest: list[str],
    arguments: Arguments,
) -> None:
    name, equals, value = word.partition("=")
    option = known.get(name)
    if option is None:
        near = difflib.get_close_matches(name, known, 1)
        hint = f"; there is {near[0]}" if near else ""
        raise _wrong(command, f"unexpected argument {name!r}{hint}")
    if option.value and not equals:
        if not rest or (rest[0].startswith("-") and rest[0] != "-"):
            reason = "write it as " + name + "=… if it begins with a hyphen" if rest else "none"
            raise _wrong(command, f"{name} needs a value: {reason}")
        value = rest.pop(0)
    elif not option.value and equals:
        raise _wrong(command, f"{name} takes no value")
    if option.choices and value not in option.choices:
        raise _wrong(command, f"{name} must be one of {', '.join(option.choices)}")
    if option.number and not (value.isascii() and value.isdigit() and len(value) <= 18):
        raise _wrong(command, f"{name} must be a whole number, not {value[:40]!r}")
    if arguments.has(name) and not option.repeats:
        raise _wrong(command, f"{name} was given twice")
    arguments.values.setdefault(name, []).append(value)


def _wrong(command: Command, message: str) -> Exception:
    return user_error(f"{message}. Usage: {usage(command)}")


def usage(command: Command) -> str:
    """One line with all that a command takes."""
    parts = ["buzz", *command.path]
    parts += [f"<{positional.name}>" for positional in command.positionals]
    for option in command.options:
        text = f"{option.name} <{'|'.join(option.choices) or option.value}>" * bool(option.value)
        text = (text or option.name) + ("..." if option.repeats else "")
        parts.append(text if option.required else f"[{text}]")
    return " ".join(parts)


def describe(command: Command) -> str:
    """The help of one command."""
    lines = [command.help, "", f"Usage: {usage(command)}", ""]
    lines += [f"  <{positional.name}>  {positional.help}" for positional in command.positionals]
    for option in (*command.options, *GLOBAL_OPTIONS):
        head = f"{option.name} <{option.value}>" if option.value else option.name
        choices = f" [{', '.join(option.choices)}]" if option.choices else ""
        lines.append(f"  {head:<26} {option.help}{choices}")
    return "\n".join(lines) + "\n"
