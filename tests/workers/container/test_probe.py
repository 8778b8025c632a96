from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.workers.container.engines import BASE, Bench
from workers.container.disk import has_quota, mount_options
from workers.container.probe import probe

MOUNTS = (
    "20 1 8:1 / / rw,relatime - ext4 /dev/root rw\n"
    "21 20 8:2 / /var rw,relatime shared:1 - xfs /dev/sdb rw,attr2,prjquota\n"
    "22 21 8:3 / /var/lib rw,relatime - xfs /dev/sdc rw,attr2,noquota\n"
)


def info(driver: str, backing: str, root: str) -> dict[str, Any]:
    status = [["Backing Filesystem", backing], ["Supports d_type", "true"]]
    return {"Driver": driver, "DriverStatus": status, "DockerRootDir": root}


@pytest.mark.parametrize(
    ("driver", "backing", "root", "quota"),
    [
        ("overlay2", "xfs", "/var/docker", True),
        ("overlay2", "xfs", "/var/lib/docker", False),
        ("overlay2", "extfs", "/docker", False),
        ("btrfs", "btrfs", "/docker", True),
        ("vfs", "xfs", "/var/docker", False),
    ],
)
def test_quotas_need_the_right_driver_on_the_right_file_system(
    driver: str, backing: str, root: str, quota: bool
) -> None:
    assert has_quota(info(driver, backing, root), MOUNTS) is quota


def test_the_longest_mount_point_holds_a_path(tmp_path: Any) -> None:
    assert mount_options(MOUNTS, tmp_path) == "rw"
    assert mount_options("", tmp_path) == ""


@pytest.mark.docker
def test_this_node_is_fit(bench: Bench) -> None:
    async def scenario() -> None:
        async with bench.engine() as engine:
            facts = await probe(engine, engine.api.image_id(BASE, 20))
            assert facts.same_kernel is True
            assert facts.door_problem == facts.freezer_problem == facts.fence_problem == ""
            assert facts.cgroup_version in ("1", "2")
            assert facts.free_bytes is not None
            assert facts.free_bytes > 0
            assert facts.version
            assert facts.api_version.startswith("1.")
            untried = await probe(engine)
            assert (untried.same_kernel, untried.door_problem) == (None, None)

    asyncio.run(scenario())
