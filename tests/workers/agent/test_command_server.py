"""The ``buzz`` command as a process: wrapper, thin client, server, relay."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.workers.agent.worlds import World
from workers.agent.command_server import SOCKET_VARIABLE, CommandServer
from workers.agent.shell import Shell, ShellResult


class Container:
    """A shell as the agent has it, with the agent's command server behind it."""

    def __init__(self, world: World, server: CommandServer) -> None:
        self.variables = {
            **world.variables(world.agent),
            **server.variables(),
            "PATH": f"{server.bin_directory}:{os.environ['PATH']}",
            "CHANNEL": world.channel,
        }

    def run(self, command: str, workdir: str = "/", **changes: str) -> ShellResult:
        return Shell({**self.variables, **changes}).run(command, workdir)


def texts(result: ShellResult) -> tuple[int, str, str]:
    return result.exit_code, result.stdout.data.decode(), result.stderr.data.decode()


@pytest.fixture
def container(world: World) -> Iterator[Container]:
    server = CommandServer()
    thread = threading.Thread(target=server.serve)
    thread.start()
    yield Container(world, server)
    server.close()
    thread.join(20)
    assert not thread.is_alive()


def test_a_here_document_keeps_its_lines(container: Container, world: World) -> None:
    result = container.run(
        "buzz messages send --channel $CHANNEL --content - <<'EOF'\nRelease\n\n- API: $ready\nEOF"
    )
    code, output, errors = texts(result)
    assert (code, errors) == (0, "")
    assert '"accepted": true' in output
    assert world.relay.timeline()[-1].content == "Release\n\n- API: $ready\n"


def test_without_a_pipe_an_empty_message_is_read(container: Container, world: World) -> None:
    assert texts(container.run("buzz messages send --channel $CHANNEL --content -"))[0] == 0
    assert world.relay.timeline()[-1].content == ""


def test_standard_input_that_nobody_asked_for_is_left_alone(container: Container) -> None:
    result = container.run("printf 'a\\nb\\n' | while read x; do buzz users get; done | wc -l")
    assert texts(result)[1].strip() == "2"


def test_errors_go_to_standard_error_with_their_code(container: Container) -> None:
    code, output, errors = texts(container.run("buzz messages sned"))
    assert (code, output) == (1, "")
    assert '"error": "user_error"' in errors


def test_the_key_of_the_caller_s_environment_counts(container: Container, world: World) -> None:
    other = world.party("Other")
    result = container.run(
        "buzz users get",
        BUZZ_PRIVATE_KEY=other.keypair.secret_hex,
        BUZZ_AUTH_TAG=other.attestation.to_text(),
    )
    assert '"display_name": "Other"' in texts(result)[1]
    assert texts(container.run("buzz users get", BUZZ_PRIVATE_KEY=""))[0] == 3


def test_paths_are_the_caller_s(container: Container, world: World, tmp_path: Path) -> None:
    world.buzz("mem", "set", "n", "a\n")
    (tmp_path / "p.diff").write_text("@@ -1 +1 @@\n-a\n+b\n")
    words = "buzz mem patch n --no-base-hash --dry-run --patch-file p.diff"
    assert texts(container.run(words, workdir=str(tmp_path)))[1] == "b\n"


def test_a_reader_that_leaves_early_ends_the_command_quietly(container: Container) -> None:
    code, _, errors = texts(container.run("buzz --help | true; echo $?"))
    assert (code, errors) == (0, "")


def test_commands_run_side_by_side(container: Container) -> None:
    words = "for i in 1 2 3 4 5 6; do buzz users get & done; wait"
    assert texts(container.run(words))[1].count("solo-1") == 6


def test_without_an_agent_it_says_so(container: Container) -> None:
    code, _, errors = texts(container.run("buzz users get", **{SOCKET_VARIABLE: "nobody"}))
    assert code == 4
    assert "cannot be reached" in errors


def test_the_client_loads_next_to_nothing() -> None:
    told = subprocess.run(
        [sys.executable, "-I", "-S", "-X", "importtime", "workers/agent/buzz_client.py"],
        capture_output=True,
        text=True,
        check=False,
        env={},
    )
    lines = [line for line in told.stderr.splitlines() if line.startswith("import time:")]
    loaded = {line.rpartition("|")[2].strip() for line in lines}
    assert "_socket" in loaded
    assert not loaded & {"socket", "json", "signal", "re", "typing", "argparse", "enum", "site"}


def test_without_threads_a_command_fails_and_the_server_stays(
    container: Container, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = threading.Thread.start

    def refuse(thread: threading.Thread) -> None:
        if thread.name.endswith("(_serve_one)"):
            raise RuntimeError("can't start new thread")
        start(thread)

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        assert texts(container.run("buzz users get"))[0] == 4
    assert texts(container.run("buzz users get"))[0] == 0


def test_a_client_that_goes_away_does_no_harm(container: Container) -> None:
    for start in (b"", b"\0\0", b"\0\0\0\5ab", b"\xff\xff\xff\xff", b"\0\0\0\3abc"):
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as link:
            link.connect("\0" + container.variables[SOCKET_VARIABLE])
            link.sendall(start)
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        if "solo-1" in texts(container.run("buzz users get"))[1]:
            return
    raise AssertionError("the server does not answer any more")
