"""Runs one ``buzz`` command line: finds the command, reads its flags, reports how it ended."""

from __future__ import annotations

import difflib
import traceback
from collections.abc import Sequence

from workers.agent import journal
from workers.agent.commands import (
    arguments,
    channel_changes,
    channels,
    feed,
    memory,
    messages,
    reactions,
    users,
)
from workers.agent.commands.arguments import GLOBAL_OPTIONS, Arguments, Command
from workers.agent.commands.call import Call
from workers.agent.commands.errors import CommandError, user_error

COMMANDS: dict[tuple[str, ...], Command] = {
    command.path: command
    for module in (messages, channels, channel_changes, users, memory, reactions, feed)
    for command in module.COMMANDS
}
_HELP = ("-h", "--help", "help")


def run(call: Call) -> int:
    """Runs the command that ``call`` holds; its output is in ``call`` then. Gives the exit code."""
    try:
        _run(call)
    except CommandError as error:
        call.note(error.to_json())
        return error.exit_code
    except Exception as error:  # noqa: BLE001 - a bug of ours must not end the agent
        journal.write(f"buzz {' '.join(call.words[:2])}: {traceback.format_exc()}")
        fault = CommandError("error", f"internal fault: {type(error).__name__}")
        call.note(fault.to_json())
        return fault.exit_code
    return 0


def _run(call: Call) -> None:
    words = list(call.words)
    call.globals, words = _leading_globals(words)
    path = tuple(words[:2])
    command = COMMANDS.get(path)
    if command is None:
        _explain(call, words)
        return
    rest = words[2:]
    if any(word in _HELP[:2] for word in rest[: _end_of_options(rest)]):
        call.print(arguments.describe(command))
        return
    read = arguments.parse(command, rest)
    for option in GLOBAL_OPTIONS:
        if read.has(option.name):
            call.globals.values[option.name] = read.all(option.name)
    command.run(call, read)


def _end_of_options(words: Sequence[str]) -> int:
    return words.index("--") if "--" in words else len(words)


def _leading_globals(words: list[str]) -> tuple[Arguments, list[str]]:
    """Global options before the command, and the words after them."""
    found = Arguments()
    names = {option.name for option in GLOBAL_OPTIONS}
    while words and words[0].partition("=")[0] in names:
        name, equals, value = words.pop(0).partition("=")
        if not equals:
            if not words:
                raise user_error(f"{name} needs a value")
            value = words.pop(0)
        found.values[name] = [value]
    return found, words


def _explain(call: Call, words: list[str]) -> None:
    """Prints help, or raises for a command that there is not."""
    named = [word for word in words[:2] if word not in _HELP]
    groups = {path[0] for path in COMMANDS}
    if words and not named:
        call.print(overview())
    elif named and named[0] in groups and len(named) < len(words[:2]):
        call.print(overview(named[0]))
    else:
        given = " ".join(words[:2])
        near = difflib.get_close_matches(given, [" ".join(path) for path in COMMANDS], 3, 0.5)
        hint = f"; near it: {', '.join(near)}" if near else ""
        raise user_error(f"there is no command 'buzz {given}'{hint}. See buzz --help")


def overview(group: str = "") -> str:
    """The commands with a line each: all, or those of one group."""
    lines = ["Usage: buzz <group> <command> [options]   (--help after a command: its options)", ""]
    lines += [
        f"  buzz {' '.join(path):<26} {command.help}"
        for path, command in COMMANDS.items()
        if group in ("", path[0])
    ]
    return "\n".join(lines) + "\n"
