"""An engine of its own for each Docker test, and the check that nothing of it is left."""

from __future__ import annotations

import contextlib
import secrets
import subprocess
import time
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.base_image import base_image
from workers.container.api import DockerApi
from workers.container.docker import DockerEngine
from workers.container.interface import ContainerSpec

BASE = base_image()
PATIENCE_S = 30.0


@dataclass
class Bench:
    """What one test works with."""

    directory: Path
    node: str = field(default_factory=lambda: f"test-{secrets.token_hex(6)}")

    async def open(self) -> DockerEngine:
        """An engine that the test closes itself."""
        return await DockerEngine.open(self.node, directory=self.directory)

    @contextlib.asynccontextmanager
    async def engine(self) -> AsyncIterator[DockerEngine]:
        """An open engine; the test fails if it leaves a container, whatever close would remove."""
        engine = await self.open()
        try:
            yield engine
            assert engine.api.listing("containers", [f"apiary.node={self.node}"], 20) == []
        finally:
            await engine.close()


def spec(*command: str, image: str = BASE, **options: object) -> ContainerSpec:
    """A spec with defaults of a test."""
    labels = {"apiary.sweep": "test"}
    return ContainerSpec(**{"image": image, "command": command, "labels": labels} | options)


def docker(*words: str) -> str:
    """Runs Docker's command line, for what the code under test should not be asked."""
    done = subprocess.run(["docker", *words], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def eventually(claim: Callable[[], object], timeout_s: float = PATIENCE_S) -> None:
    """Waits until a claim holds; only for what the kernel or Docker do by themselves."""
    ends = time.monotonic() + timeout_s
    while not claim():
        assert time.monotonic() < ends, "it did not come true in time"
        time.sleep(0.02)


@contextlib.contextmanager
def built_image(context: Path, dockerfile: str) -> Iterator[str]:
    """An image for tests; removed with its layers."""
    tag = f"apiary-test:{secrets.token_hex(6)}"
    context.mkdir(parents=True, exist_ok=True)
    (context / "Dockerfile").write_text(dockerfile)
    docker("build", "--force-rm", "--tag", tag, str(context))
    try:
        yield tag
    finally:
        docker("image", "rm", "--force", tag)


def nothing_labelled(label: str) -> bool:
    """Whether the engine has no container, volume or network with the label."""
    api = DockerApi(1)
    with contextlib.closing(api):
        return not any(
            api.listing(kind, [label], 20) for kind in ("containers", "volumes", "networks")
        )
