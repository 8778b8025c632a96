from __future__ import annotations

from pathlib import Path

import pytest

from workers.container.interface import ContainerError, ContainerSpec, Mount
from workers.container.settings import NETWORK, container_body, hosts_text


def make(**options: object) -> ContainerSpec:
    return ContainerSpec(**{"image": "sha256:1", "command": ["a", "b"], "labels": {}} | options)


def test_the_command_replaces_entrypoint_and_command() -> None:
    body = container_body(make(), {})
    assert (body["Entrypoint"], body["Cmd"]) == (["a"], ["b"])


def test_limits_are_given_in_the_units_of_the_engine() -> None:
    host = container_body(make(cpus=2, memory_mb=3, pids=4), {})["HostConfig"]
    assert host["NanoCpus"] == 2_000_000_000
    assert host["Memory"] == host["MemorySwap"] == 3 * 1024 * 1024
    assert host["PidsLimit"] == 4


def test_what_a_container_writes_is_bounded() -> None:
    host = container_body(make(), {})["HostConfig"]
    assert host["LogConfig"]["Type"] == "local"
    assert host["LogConfig"]["Config"]["max-size"] == "1m"
    assert host["LogConfig"]["Config"]["max-file"] == "1"
    assert "StorageOpt" not in host
    host = container_body(make(storage_mb=7), {}, has_quota=True)["HostConfig"]
    assert host["StorageOpt"] == {"size": "7M"}
    assert "StorageOpt" not in container_body(make(storage_mb=7), {})["HostConfig"]


def test_a_container_comes_after_what_else_runs_in_the_engine() -> None:
    assert container_body(make(), {})["HostConfig"]["CpuShares"] < 1024


def test_a_hardened_container_has_no_privileges() -> None:
    host = container_body(make(), {})["HostConfig"]
    assert (host["CapDrop"], host["SecurityOpt"]) == (["ALL"], ["no-new-privileges"])
    host = container_body(make(harden=False), {})["HostConfig"]
    assert not {"CapDrop", "SecurityOpt"} & host.keys()


def test_the_network_is_none_unless_public() -> None:
    assert container_body(make(), {})["HostConfig"]["NetworkMode"] == "none"
    assert container_body(make(network="public"), {})["HostConfig"]["NetworkMode"] == NETWORK


def test_an_engine_sets_up_no_network_for_a_sealed_container_with_a_hosts_file() -> None:
    own = Path("/trial/hosts")
    body = container_body(make(hosts_file=own, mounts=[Mount(Path("/a"), "/b")]), {})
    assert (body["NetworkDisabled"], body["HostConfig"]["NetworkMode"]) == (True, "none")
    mounts = body["HostConfig"]["Mounts"]
    assert [mount["Target"] for mount in mounts] == ["/b", "/etc/hosts"]
    assert (mounts[1]["Source"], mounts[1]["ReadOnly"]) == (str(own), False)
    for other in (make(), make(network="public", hosts_file=own)):
        body = container_body(other, {})
        assert "NetworkDisabled" not in body
        assert body["HostConfig"]["Mounts"] == []


def test_a_hosts_file_names_the_loopback_in_ipv4_alone() -> None:
    told = [line.split("\t") for line in hosts_text(make()).splitlines()]
    assert ["127.0.0.1", "localhost"] in told
    assert not any("localhost" in names.split() for address, names in told if ":" in address)


def test_names_of_the_loopback_are_told_wherever_they_are_read() -> None:
    named = {"loopback_names": ["relay.test"]}
    assert container_body(make(**named), {})["HostConfig"]["ExtraHosts"] == ["relay.test:127.0.0.1"]
    own = make(**named, hosts_file=Path("/trial/hosts"))
    assert "ExtraHosts" not in container_body(own, {})["HostConfig"]
    assert "127.0.0.1\trelay.test\n" in hosts_text(own)


def test_labels_are_those_given_beside_the_spec() -> None:
    assert container_body(make(labels={"ignored": "1"}), {"all": "2"})["Labels"] == {"all": "2"}


def test_mounts_are_read_only_unless_said() -> None:
    mounts = [Mount(Path("/a"), "/b"), Mount(Path("/c"), "/d", read_only=False)]
    told = container_body(make(mounts=mounts), {})["HostConfig"]["Mounts"]
    assert [mount["ReadOnly"] for mount in told] == [True, False]
    assert {mount["Type"] for mount in told} == {"bind"}


@pytest.mark.parametrize(
    "options",
    [
        {"command": []},
        {"cpus": 0},
        {"memory_mb": 0},
        {"pids": -1},
        {"mounts": [Mount(Path("relative"), "/b")]},
        {"mounts": [Mount(Path("/a"), "relative")]},
    ],
)
def test_the_impossible_is_refused(options: dict[str, object]) -> None:
    with pytest.raises(ContainerError, match="sha256:1"):
        container_body(make(**options), {})


@pytest.mark.parametrize(("name", "value"), [("", "secret"), ("=x", "secret"), ("X", "secret\0")])
def test_a_refused_variable_is_not_shown(name: str, value: str) -> None:
    with pytest.raises(ContainerError) as caught:
        container_body(make(environment={name: value}), {})
    assert "secret" not in str(caught.value)


def test_a_working_folder_is_the_images_unless_one_is_given() -> None:
    assert "WorkingDir" not in container_body(make(), {})
    assert container_body(make(workdir="/srv"), {})["WorkingDir"] == "/srv"
