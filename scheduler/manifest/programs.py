"""The programs of the production stack, read where ``agent_bin_dir`` says."""

from __future__ import annotations

import os
import platform
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from scheduler.manifest.condition import LoadedCondition
from workers.contract.base import sha256_hex
from workers.contract.buzz import HEAD_BYTES, PROGRAMS, BuzzStack, program_problem
from workers.contract.endpoint import Endpoint

MAX_BYTES = 512 * 1024 * 1024
"""Of one program; each is held in memory while it is uploaded."""

OUTPUT_DEFAULT, WINDOW_DEFAULT = 65_536, 200_000
"""``buzz-agent``'s own, in tokens, where neither a condition nor an endpoint says another."""


class ProgramsError(Exception):
    """The folder does not hold the programs; a line for each that is wrong."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems


class Programs(NamedTuple):
    """The programs of a folder."""

    stack: BuzzStack
    files: Mapping[str, Path]
    """Digest to the file, for the store to be given it."""


def read_programs(folder: Path) -> Programs:
    """Reads and checks the three programs of a folder; what else is in it does not count.

    Raises:
        ProgramsError: one is missing, cannot be executed, or is made for another machine.
    """
    problems: list[str] = []
    digests: dict[str, str] = {}
    files: dict[str, Path] = {}
    for name in PROGRAMS:
        path = folder / name
        try:
            data = _read(path)
        except ProgramsError as error:
            problems += error.problems
            continue
        problem = program_problem(data[:HEAD_BYTES], platform.machine())
        if problem:
            problems.append(f"{path}: {problem}")
        digests[name] = sha256_hex(data)
        files[digests[name]] = path
    if problems:
        raise ProgramsError(problems)
    return Programs(BuzzStack(digests=digests), files)


def _read(path: Path) -> bytes:
    try:
        # Non-blocking, so that a pipe cannot hold us up.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        facts = os.fstat(descriptor)
        if not stat.S_ISREG(facts.st_mode):
            os.close(descriptor)
            raise ProgramsError([f"{path}: not a regular file"])
        with open(descriptor, "rb") as stream:
            if not facts.st_mode & stat.S_IXUSR:
                raise ProgramsError([f"{path}: not executable; say chmod +x to it"])
            if facts.st_size > MAX_BYTES:
                raise ProgramsError([f"{path}: larger than {MAX_BYTES} bytes"])
            return stream.read()
    except FileNotFoundError as error:
        raise ProgramsError([f"{path}: there is no such file"]) from error
    except OSError as error:
        raise ProgramsError([f"{path}: cannot be read: {error.strerror}"]) from error


def start_warnings(loaded: LoadedCondition, endpoints: Mapping[str, Endpoint]) -> Iterator[str]:
    """Why ``buzz-agent`` would not start with what a condition pins; its next version may."""
    for entry in loaded.condition.roster:
        endpoint = endpoints[entry.endpoint]
        pinned = entry.generation
        output, output_from = _tokens(
            pinned.max_output_tokens, endpoint, "BUZZ_AGENT_MAX_OUTPUT_TOKENS", OUTPUT_DEFAULT
        )
        window, window_from = _tokens(
            pinned.context_window_tokens, endpoint, "BUZZ_AGENT_MAX_CONTEXT_TOKENS", WINDOW_DEFAULT
        )
        if output >= window:
            yield (
                f"{loaded.path}: {entry.id}: buzz-agent needs an output below the window, and has "
                f"{output} ({output_from}) of {window} ({window_from}): it will not start"
            )
        effort = pinned.thinking_effort
        if effort in ("none", "minimal") and endpoint.provider == "anthropic":
            yield (
                f"{loaded.path}: {entry.id}: buzz-agent refuses thinking_effort {effort} for "
                "provider anthropic: it will not start"
            )


def _tokens(pinned: int | None, endpoint: Endpoint, variable: str, default: int) -> tuple[int, str]:
    """A figure and who says it."""
    if pinned is not None:
        return pinned, "the condition's"
    said = endpoint.env.get(variable, "")
    if said.isascii() and said.isdigit():
        return int(said), "the endpoint's"
    return default, "its own"
