from __future__ import annotations

import os
from pathlib import Path

import pytest

from workers.container import cgroup

V1 = "9:name=systemd:/docker/abc\n4:memory:/docker/abc\n1:cpu,cpuacct:/docker/abc\n0::/docker/abc\n"
V2 = "0::/system.slice/docker-abc.scope\n"
MOUNTS = (
    "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755\n"
    "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime shared:9 - cgroup cgroup rw,memory\n"
    "41 31 0:38 /a /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n"
)


def test_the_memory_cgroup_is_found_in_both_versions() -> None:
    assert cgroup.cgroups_with(V1, "memory") == [
        ("cgroup", "memory", "/docker/abc"),
        ("cgroup2", "", "/docker/abc"),
    ]
    assert cgroup.cgroups_with(V2, "memory") == [("cgroup2", "", "/system.slice/docker-abc.scope")]
    assert cgroup.cgroups_with(V1, "cpu")[0] == ("cgroup", "cpu,cpuacct", "/docker/abc")
    # Where version 1 lacks the controller, version 2 has it.
    assert cgroup.cgroups_with(V1, "freezer") == [("cgroup2", "", "/docker/abc")]


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


@pytest.mark.parametrize(
    ("path", "top"),
    [
        ("/docker/abc", "/docker/abc"),
        ("/docker/abc/init.scope", "/docker/abc"),
        ("/system.slice/docker-abc.scope/a/b", "/system.slice/docker-abc.scope"),
        ("/docker/outer/docker/abc", "/docker/outer/docker/abc"),
        ("/docker/other", ""),
        ("/", ""),
    ],
)
def test_a_container_that_made_groups_is_the_group_above_them(path: str, top: str) -> None:
    assert cgroup._top(path, "abc") == top


def test_the_containers_own_limit_is_told_from_others(tmp_path: Path) -> None:
    one, two = tmp_path / "memory.oom_control", tmp_path / "memory.events"
    assert cgroup.limit_reached(one) is cgroup.limit_reached(two) is None
    limit = 256 * 2**20
    (tmp_path / "memory.limit_in_bytes").write_text(f"{limit}\n")
    for highest, failed, reached in ((limit // 2, 0, False), (limit - 4096, 3, True)):
        (tmp_path / "memory.max_usage_in_bytes").write_text(f"{highest}\n")
        two.write_text(f"low 0\nmax 7\noom {failed}\noom_kill 1\n")
        assert cgroup.limit_reached(one) is cgroup.limit_reached(two) is reached


def test_a_process_tells_of_itself() -> None:
    group = cgroup.Group(2, "/", Path("/nowhere"))
    assert group.pids() == set()
    assert group.processes() == []
    me = cgroup._process(os.getpid())
    assert me is not None
    assert (me.pid, me.parent) == (os.getpid(), os.getppid())
    assert "py" in me.command
    assert cgroup._process(2**22 + 1) is None


def test_a_process_outside_belongs_to_no_container() -> None:
    assert not cgroup.belongs(os.getpid(), "f" * 64)
    assert not cgroup.belongs(2**22 + 1, "")
    assert cgroup.counter_file(os.getpid(), "f" * 64) is None
    assert cgroup.counter_file(2**22 + 1, "f" * 64) is None
