"""A relay in a process of its own, configured like a deployment, for whoever runs trials on it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from workers.nostr.keys import Keypair

ROOT = Path(__file__).resolve().parents[1]
URL = "ws://relay.deployment.test:3600"
"""No name server knows it, and nothing listens at its port: it is a name to be signed."""
ENDED_S = 20.0


@dataclass
class SecondRelay:
    """It, and the key of its one member."""

    owner: Keypair
    owner_file: Path
    url: str
    port: int
    process: subprocess.Popen[str]

    @property
    def gateway(self) -> str:
        """Where it really listens."""
        return f"127.0.0.1:{self.port}"

    def kill(self) -> None:
        """Ends it without a goodbye."""
        self.process.kill()
        self.process.wait(ENDED_S)


@contextmanager
def second_relay(folder: Path, *flags: str, url: str = URL) -> Iterator[SecondRelay]:
    """Serves one; ``folder`` gets the owner's key."""
    owner = Keypair.generate()
    owner_file = folder / "owner.key"
    owner_file.write_text(f"{owner.nsec}\n")
    arguments = ["relay", "serve", "--json", "--url", url, "--owner", str(owner_file), *flags]
    process = subprocess.Popen(
        [sys.executable, "-m", "scheduler", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdout is not None
    try:
        shown = json.loads(process.stdout.readline())
        port = int(str(shown["listens"]).rpartition(":")[2])
        yield SecondRelay(owner, owner_file, url, port, process)
    finally:
        process.kill()
        process.wait(ENDED_S)
        process.stdout.close()
