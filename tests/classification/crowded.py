"""A node without memory to spare: a control group around the container, tighter than its own."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

from tests.classification.trials import until
from workers.container.calls import Deadline
from workers.container.cgroup import group_of
from workers.container.docker import DockerEngine

PARENT = f"apiary-crowded-{os.getpid()}"
LEFT_BYTES = 96 * 1024 * 1024
"""What the control group around it lets all of its containers have."""


class CrowdedEngine(DockerEngine):
    """Docker, with its containers in a control group of ours."""

    def _create(self, name: str, body: dict[str, Any], deadline: Deadline) -> str:
        driver = self.api.ask("ask for the driver", "GET", "/info", 20.0).json()["CgroupDriver"]
        parent = f"{PARENT.replace('-', '')}.slice" if driver == "systemd" else f"/{PARENT}"
        crowded = {**body, "HostConfig": {**body["HostConfig"], "CgroupParent": parent}}
        return super()._create(name, crowded, deadline)

    async def close(self) -> None:
        await super().close()
        await until(_groups_are_removed)


async def crowd(pid: int, container: str) -> None:
    """Leaves the group around a container's own this much."""
    group = await asyncio.to_thread(group_of, pid, container, "memory")
    assert group is not None
    around = group.folder.parent
    assert "crowded" in around.name
    name = "memory.max" if group.version == 2 else "memory.limit_in_bytes"
    await asyncio.to_thread((around / name).write_text, str(LEFT_BYTES))


def _groups_are_removed() -> bool:
    """Removes them; whether none is left. Those of the containers go a moment after them."""
    for pattern in (PARENT, f"*/{PARENT}"):
        for folder in Path("/sys/fs/cgroup").glob(pattern):
            try:
                folder.rmdir()
            except OSError:
                return False
    return True
