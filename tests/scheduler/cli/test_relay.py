from __future__ import annotations

import asyncio
import json
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from scheduler.cli import run_cli
from scheduler.cli.exits import Exit
from workers.nostr.attestation import Attestation
from workers.nostr.keys import Keypair
from workers.relay import RelayClient

pytestmark = pytest.mark.long

PROGRAM = "from scheduler.cli import main; main()"


@contextmanager
def served(*arguments: str) -> Iterator[Any]:
    """A relay in a process of its own; gives what it printed and ends it with Ctrl-C."""
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, "relay", "serve", "--json", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        yield json.loads(process.stdout.readline() or "null")
    finally:
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=20)
    assert process.returncode == Exit.DONE, said
    assert "Traceback" not in said


def client(shown: Any, key: Any) -> RelayClient:
    pair, proof = Keypair.from_secret(key["secret"]), Attestation.from_text(key["auth_tag"])
    return RelayClient(shown["url"], pair, proof, timeout_s=10)


def test_a_relay_is_served_and_remembers_when_it_is_told_to(tmp_path: Path) -> None:
    owner = Keypair.generate()
    key_file = tmp_path / "owner"
    key_file.write_text(owner.nsec + "\n")
    arguments = ("--owner", str(key_file), "--events", str(tmp_path / "events.jsonl"))

    async def publish(shown: Any) -> str:
        one, two = shown["keys"]
        async with client(shown, one) as user, client(shown, two) as agent:
            channel = await user.create_channel("kept")
            await user.add_member(channel, agent.keypair.pubkey)
            await agent.send_message(channel, "hello")
        return channel

    async def read(shown: Any, channel: str, key: Any) -> list[str]:
        async with client(shown, key) as agent:
            return [event.content for event in await agent.read_channel(channel, kinds=[9])]

    with served(*arguments, "--keys", "2") as shown:
        assert shown["owner"] == owner.pubkey
        assert shown["url"].startswith("ws://127.0.0.1:")
        channel = asyncio.run(publish(shown))
        key = shown["keys"][1]
    with served(*arguments) as shown:
        assert shown["keys"] == []
        assert asyncio.run(read(shown, channel, key)) == ["hello"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "nobody could use this relay"),
        (["--owner", "{tmp}/owner"], "not a secret key"),
        (["--keys", "1", "--events", "{tmp}/bad.jsonl"], "bad.jsonl:1: no event"),
        (["--keys", "1", "--events", "{tmp}/none/x"], "No such file"),
        (["--keys", "1", "--port", "{port}"], "cannot listen on 127.0.0.1:"),
        (["--keys", "-1"], "Invalid value"),
        (["--keys", "1", "--url", "http://h"], "--url must be ws://host"),
        (["--keys", "1", "--url", "wss://h/path"], "--url must be ws://host"),
        (["--keys", "1", "--api-rate", "300"], "expected COUNT/SECONDS, for example 300/60"),
        (["--keys", "1", "--frame-rate", "0/5"], "expected COUNT/SECONDS"),
    ],
)
def test_what_cannot_be_served_is_usage(
    arguments: list[str], words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "owner").write_text("a secret that must not be shown")
    (tmp_path / "bad.jsonl").write_text("junk\n")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        filled = [part.format(tmp=tmp_path, port=port) for part in arguments]
        assert run_cli(["relay", "serve", *filled]) == Exit.USAGE
    captured = capsys.readouterr()
    assert words in captured.err
    assert "must not be shown" not in captured.err
    assert captured.out == ""
