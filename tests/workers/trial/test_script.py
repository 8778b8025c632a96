"""Which program runs a task's script."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from workers.trial.script import command_of, into_file


@pytest.mark.parametrize(
    ("first", "words"),
    [
        (b"#!/bin/bash\n", ("/bin/bash",)),
        (b"#!/bin/sh", ("/bin/sh",)),
        (b"#! /bin/bash -e -u\n", ("/bin/bash", "-e -u")),
        (b"#!/usr/bin/env python3\r\n", ("/usr/bin/env", "python3")),
        (b"", ("bash",)),
        (b"echo hello\n", ("bash",)),
        (b"#!\n", ("bash",)),
        (b"#!bash\n", ("bash",)),
        (b"\xff\xfe", ("bash",)),
    ],
)
def test_the_first_line_says_it(tmp_path: Path, first: bytes, words: tuple[str, ...]) -> None:
    script = tmp_path / "solve.sh"
    script.write_bytes(first)
    assert command_of(script, "/solution/solve.sh") == (*words, "/solution/solve.sh")


def test_output_goes_to_the_file_and_nothing_is_read(tmp_path: Path) -> None:
    script = tmp_path / "a b.sh"
    script.write_text("#!/bin/sh\ncat\necho out; echo err >&2; exit 3\n")
    command = into_file(command_of(script, str(script)), str(tmp_path / "log"))
    assert subprocess.run(command, input=b"in", check=False).returncode == 3
    assert (tmp_path / "log").read_text() == "out\nerr\n"
