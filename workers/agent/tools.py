"""The tools that the model may call: one, the shell."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from workers.agent import shell
from workers.agent.llm import Tool, ToolCall, ToolResult

PARALLEL = 8
CALLS_LIMIT = 64
ERROR_NOTE = "\nThe call failed: find out why before you repeat it."

SHELL = Tool(
    name="shell",
    description=(
        "Runs a command with bash and gives its exit code, standard output and standard error. "
        "Standard input is empty, and everything the command started ends with it. The `buzz` "
        "command, which sends messages and reads channels, is on the path."
    ),
    schema={
        "type": "object",
        "properties": {
            "command": {"type": "string", "description": "What to run."},
            "workdir": {
                "type": "string",
                "description": "Where to run it; without it, in the working directory.",
            },
            "timeout_ms": {
                "type": "integer",
                "description": "Milliseconds after which it is killed: 120000 unless said.",
            },
        },
        "required": ["command"],
        "additionalProperties": False,
    },
)


class ArgumentError(Exception):
    """The model called a tool that is none, or with arguments that it does not take."""


class Toolbox:
    """Runs the model's calls.

    Args:
        commands: the shell that runs them.
        workdir: the working directory.
    """

    tools: Sequence[Tool] = (SHELL,)

    def __init__(self, commands: shell.Shell, workdir: str) -> None:
        self._shell = commands
        self._workdir = workdir

    def run(self, calls: Sequence[ToolCall]) -> tuple[ToolResult, ...]:
        """Runs calls side by side; the results are in the order of the calls."""
        refused = f"not run: more than {CALLS_LIMIT} calls in one answer"
        results = [ToolResult(call.id, refused, is_error=True) for call in calls]
        rest = iter(list(enumerate(calls[:CALLS_LIMIT])))
        taking = threading.Lock()

        def work() -> None:
            while True:
                with taking:
                    place, call = next(rest, (-1, None))
                if call is None:
                    return
                results[place] = self._run_one(call)

        helpers = _start(work, min(len(calls), PARALLEL) - 1)
        work()
        for helper in helpers:
            helper.join()
        return tuple(results)

    def _run_one(self, call: ToolCall) -> ToolResult:
        try:
            return ToolResult(call.id, self._call(call))
        except (ArgumentError, OSError, ValueError) as error:
            return ToolResult(call.id, f"{error}{ERROR_NOTE}", is_error=True)

    def _call(self, call: ToolCall) -> str:
        if call.name != SHELL.name:
            raise ArgumentError(f"there is no tool {call.name!r}; there is only 'shell'")
        command = call.arguments.get("command")
        if not isinstance(command, str) or "\0" in command:
            raise ArgumentError("shell needs 'command', a text without NUL")
        result = self._shell.run(command, self._directory(call.arguments), _timeout(call.arguments))
        return shell.describe(result)

    def _directory(self, arguments: Mapping[str, Any]) -> str:
        given = arguments.get("workdir") or ""
        if not isinstance(given, str) or "\0" in given:
            raise ArgumentError("workdir must be a path")
        return os.path.join(self._workdir, os.path.expanduser(given))


def _start(body: Callable[[], None], count: int) -> list[threading.Thread]:
    """Starts threads, as many as the container's limit still allows."""
    started: list[threading.Thread] = []
    with suppress(RuntimeError):
        for _ in range(count):
            thread = threading.Thread(target=body, daemon=True)
            thread.start()
            started.append(thread)
    return started


def _timeout(arguments: Mapping[str, Any]) -> float:
    """The call's time in seconds, within what a call may have."""
    given = arguments.get("timeout_ms")
    if given is None:
        return shell.DEFAULT_TIMEOUT_S
    if not isinstance(given, (int, float)) or isinstance(given, bool) or not given > 0:
        raise ArgumentError("timeout_ms must be a number of milliseconds above 0")
    return min(given / 1000, shell.MAX_TIMEOUT_S)
