"""How a task's own script is started: by the interpreter that its first line names."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

SHELL = ("bash",)
"""Of a script that names none, as in Harbor."""
FIRST_LINE_BYTES = 256
"""What the kernel reads of it (execve(2))."""


def command_of(script: Path, inside: str) -> tuple[str, ...]:
    """Program and arguments that run a script where it is mounted, executable bit or not.

    Args:
        script: the file on this machine.
        inside: its path in the container.
    """
    with script.open("rb") as stream:
        first, _, _ = stream.read(FIRST_LINE_BYTES).partition(b"\n")
    if not first.startswith(b"#!"):
        return (*SHELL, inside)
    # The kernel hands over one argument at most, blanks and all.
    words = first[2:].decode("utf-8", "replace").strip().split(None, 1)
    return (*words, inside) if words and words[0].startswith("/") else (*SHELL, inside)


def into_file(command: Sequence[str], output: str) -> tuple[str, ...]:
    """The command with nothing to read, and all that it writes in a file of the container."""
    return ("/bin/sh", "-c", f'exec "$@" >{output} 2>&1 </dev/null', "sh", *command)
