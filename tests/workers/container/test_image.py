from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from tests.workers.container.engines import eventually
from workers.container.calls import CallTimeoutError, Deadline
from workers.container.image import frontend, run_tail


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("# syntax=docker/dockerfile:1\nFROM x\n", "docker/dockerfile:1"),
        ("#syntax = docker/dockerfile:1.7 \nFROM x\n", "docker/dockerfile:1.7"),
        ("# escape=`\n# SYNTAX=me/mine\nFROM x\n", "me/mine"),
        ("# a comment\n# syntax=docker/dockerfile:1\nFROM x\n", None),
        ("\n# syntax=docker/dockerfile:1\nFROM x\n", None),
        ("FROM x\n# syntax=docker/dockerfile:1\n", None),
        ("# syntax\nFROM x\n", None),
        ("", None),
    ],
)
def test_a_frontend_is_asked_for_by_the_first_lines_only(text: str, wanted: str | None) -> None:
    assert frontend(text) == wanted


def test_a_program_gives_status_and_last_lines() -> None:
    program = "import sys; [print(i) for i in range(10_000)]; sys.exit(3)"

    async def scenario() -> None:
        deadline = Deadline("count", 30)
        status, tail = await run_tail([sys.executable, "-c", program], deadline)
        assert status == 3
        assert tail.splitlines() == [str(number) for number in range(9975, 10_000)]

    asyncio.run(scenario())


LINGERS = "echo begun; sleep 1000 & echo $! ; wait"


def test_a_program_that_takes_too_long_is_killed_with_its_children() -> None:
    async def scenario() -> str:
        with pytest.raises(
            CallTimeoutError, match=r"linger: not done within 0.5 s .*\nbegun"
        ) as error:
            await run_tail(["sh", "-c", LINGERS], Deadline("linger", 0.5))
        return str(error.value)

    assert_gone(int(asyncio.run(scenario()).splitlines()[-1]))


def test_a_cancelled_caller_takes_its_program_along(tmp_path: Path) -> None:
    file = tmp_path / "pid"
    script = f"sleep 1000 & echo $! > {file}.new; mv {file}.new {file}; wait"

    async def scenario() -> None:
        task = asyncio.create_task(run_tail(["sh", "-c", script], Deadline("linger", 60)))
        await asyncio.to_thread(eventually, file.exists)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(scenario())
    assert_gone(int(file.read_text()))


def assert_gone(pid: int) -> None:
    """A killed orphan is a zombie until init collects it, which it does when it comes to it."""

    def is_gone() -> bool:
        try:
            stat = Path(f"/proc/{pid}/stat").read_text()
        except (FileNotFoundError, ProcessLookupError):
            return True
        return stat.rpartition(")")[2].split()[0] in "ZX"

    eventually(is_gone)
