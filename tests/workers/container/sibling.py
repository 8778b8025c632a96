"""A process of its own that does what a node of another sweep does, until it is told to end.

Started with a node's name, a folder and a tag; says as JSON what it made. Its container's label
has expired already, as it would seem after a jump of the clock.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

from tests.base_image import base_image
from workers.container.agent_bundle import AgentBundle
from workers.container.docker import DockerEngine
from workers.container.interface import ContainerSpec

EXPIRED = {"apiary.sweep": "sibling", "apiary.expires": "1"}


async def main(node: str, directory: Path, tag: str) -> None:
    """Builds an image, makes its bundle, starts a container of it, and waits."""
    engine = await DockerEngine.open(node, directory=directory)
    context = directory / "context"
    context.mkdir(exist_ok=True)
    (context / "Dockerfile").write_text(f"FROM {base_image()}\nENV MADE_FOR={node}\n")
    image = await engine.ensure_image(
        context, tag=tag, build_args={}, labels={"apiary.task": "x"}, timeout_s=120.0
    )
    bundle = AgentBundle(engine, directory, {"apiary.sweep": "sibling"})
    mounts = await bundle.mounts(image)
    spec = ContainerSpec(image=image, command=["sleep", "1000"], labels=EXPIRED)
    container = await engine.start(spec, 60.0)
    told = {
        "container": container.id,
        "image": image,
        "bundle": str(mounts[0].source.parent),
    }
    print(json.dumps(told), flush=True)  # noqa: T201
    await asyncio.to_thread(sys.stdin.read)
    await engine.close()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], Path(sys.argv[2]), sys.argv[3]))
