from __future__ import annotations

import os
from pathlib import Path

from workers.container import cgroup

V1 = "9:name=systemd:/docker/abc\n4:memory:/docker/abc\n1:cpu,cpuacct:/docker/abc\n0::/docker/abc\n"
V2 = "0::/system.slice/docker-abc.scope\n"
MOUNTS = (
    "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755\n"
    "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime shared:9 - cgroup cgroup rw,memory\n"
    "41 31 0:38 /a /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n"
)


def test_the_memory_cgroup_is_found_in_both_versions() -> None:
    assert cgroup.memory_cgroups(V1) == [
        ("cgroup", "memory", "/docker/abc"),
        ("cgroup2", "", "/docker/abc"),
    ]
    assert cgroup.memory_cgroups(V2) == [("cgroup2", "", "/system.slice/docker-abc.scope")]


def test_cgroup_mounts_are_told_with_root_and_options() -> None:
    assert cgroup.cgroup_mounts(MOUNTS) == [
        ("/sys/fs/cgroup/memory", "/", "cgroup", "rw,memory"),
        ("/sys/fs/cgroup/unified", "/a", "cgroup2", "rw"),
    ]


def test_both_counters_are_read_and_a_missing_one_is_none(tmp_path: Path) -> None:
    file = tmp_path / "counter"
    assert cgroup.oom_kills(file) is None
    file.write_text("oom_kill_disable 0\nunder_oom 0\noom_kill 3\n")
    assert cgroup.oom_kills(file) == 3
    file.write_text("low 0\nhigh 0\nmax 7\noom 2\noom_kill 1\noom_group_kill 0\n")
    assert cgroup.oom_kills(file) == 1
    file.write_text("")
    assert cgroup.oom_kills(file) is None


def test_a_process_outside_belongs_to_no_container() -> None:
    assert not cgroup.belongs(os.getpid(), "f" * 64)
    assert not cgroup.belongs(2**22 + 1, "")
    assert cgroup.counter_file(os.getpid(), "f" * 64) is None
    assert cgroup.counter_file(2**22 + 1, "f" * 64) is None
