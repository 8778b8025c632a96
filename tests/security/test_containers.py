"""Three hostile trials side by side on one node: what their code reaches, and what it does not.

A docstring that begins with an id is a row of ``docs/security.md``.
"""

from __future__ import annotations

import asyncio

import pytest

from tests.security import outside
from tests.security.node import KINDS, SERVED, Seen, observe
from tests.workers.gateway.upstreams import KEY
from workers.contract.outcome import Cause, Verdict

pytestmark = pytest.mark.docker

NETWORKED = ("public", "harbor")
REFUSED = {"timeout", "EADDRNOTAVAIL", "ENETUNREACH", "EHOSTUNREACH", "no name"}


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Seen:
    """What came of everything; the node's own environment has the provider's key meanwhile."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("K", KEY)
        return asyncio.run(observe(tmp_path_factory.mktemp("node")))


def words(seen: Seen, kind: str, *parts: str) -> dict[str, str]:
    """What came of the targets that hold one of some texts."""
    found = {
        target: word
        for target, word in seen.told[kind]["reach"].items()
        if any(f" {part} " in f" {target} " for part in parts)
    }
    assert found
    return found


def test_the_hosts_own_addresses(seen: Seen) -> None:
    """A1 | the node's own services, on any of its addresses: Ray, metrics, databases
    | no network, or a bridge whose packets to the node itself are dropped"""
    for kind in KINDS:
        found = words(seen, kind, str(seen.port))
        assert set(found.values()) <= REFUSED
        there = [seen.control[target] for target in found if target in seen.control]
        assert len(there) >= 2
        assert set(there) == {"done"}


def test_docker(seen: Seen) -> None:
    """A2 | the node's Docker: its sockets, and TCP 2375 and 2376 on every address of the node
    | no socket is mounted, and the rule of A1"""
    for kind in KINDS:
        assert seen.told[kind]["sockets"] == []
        assert set(words(seen, kind, *map(str, outside.DOCKER_PORTS)).values()) <= REFUSED
        assert "docker.sock" not in seen.inspected[kind]


def test_metadata(seen: Seen) -> None:
    """A3 | a cloud's metadata service, by IPv4 or IPv6, on the addresses that clouds are
    known for | rules that drop what goes there from the bridge; the bridge has no IPv6"""
    services = [*outside.METADATA, *([outside.METADATA_6] if outside.has_ipv6() else [])]
    for kind in KINDS:
        found = words(seen, kind, *services)
        allowed = found.pop(f"udp {outside.RESOLVER} {outside.DNS}")
        assert set(found.values()) <= REFUSED, kind
        assert allowed == ("ENETUNREACH" if kind == "sealed" else "done"), "Azure's resolver"
        assert {seen.control[target] for target in found} == {"done"}


def test_link_local(seen: Seen) -> None:
    """A4 | link-local neighbours of the node, by IPv4 or IPv6
    | a rule drops 169.254.0.0/16; no container has an address of IPv6"""
    for kind in KINDS:
        reached = seen.told[kind]["reach"].items()
        found = {word for target, word in reached if "%eth0" in target or " 169.254." in target}
        assert found <= REFUSED, kind


def test_the_internet_when_sealed(seen: Seen) -> None:
    """A5 | the internet, and names of it, from a sealed trial
    | network mode none: there is no interface but the loopback"""
    assert seen.told["sealed"]["interfaces"] == ["lo"]
    assert seen.told["sealed"]["names"] == "no name"
    assert set(seen.told["sealed"]["reach"].values()) <= REFUSED
    for kind in NETWORKED:
        assert set(words(seen, kind, outside.INTERNET).values()) == {"done"}, "it does exist"


def test_no_privilege_over_the_kernel(seen: Seen) -> None:
    """A6 | the kernel by a call: mounts, namespaces, clock, keys, BPF, control groups, the disk
    | no capability for it, seccomp, and the list of devices; also with Docker's usual set"""
    for kind in KINDS:
        done = {act for act, word in seen.told[kind]["acts"].items() if word == "done"}
        assert done <= ({"a raw socket", "a packet socket"} if kind == "harbor" else set())


def test_no_file_of_the_kernel_is_written(seen: Seen) -> None:
    """A7 | the kernel by a file: `/proc/sys`, `sysrq-trigger`, `core_pattern`, `/sys`
    | mounted read-only"""
    for kind in KINDS:
        assert seen.told[kind]["written"] == []
        assert seen.told[kind]["strangers"] == [], "processes of the node"


def test_agents_are_shut_to_what_runs_beside_them(seen: Seen) -> None:
    """A8 | the reference agent's process: its variables, memory, descriptors, by `/proc` or ptrace,
    as root | it wipes its variables and makes itself undumpable; nobody has CAP_SYS_PTRACE"""
    for kind in KINDS:
        agents = seen.told[kind]["agents"]
        assert len(agents) == 2, "the first process, and the agent"
        assert {word for one in agents.values() for word in one.values()} <= {"EACCES", "EPERM"}


def test_a_command_has_no_gateway_token(seen: Seen) -> None:
    """A9 | the trial's gateway, from a command that the reference agent runs
    | the token is in the agent's process alone; without it the answer is 401"""
    for kind in KINDS:
        assert not [name for name in seen.told[kind]["variables"] if "TOKEN" in name]
        assert "APIARY_AGENTS" not in seen.told[kind]["variables"]
        (answer,) = seen.told[kind]["answers"]
        assert answer.startswith("HTTP/1.0 401 ")


def test_the_providers_key_is_nowhere(seen: Seen) -> None:
    """A10 | the provider's key: in variables, files, the gateway's words, the engine's records,
    the store | it is in the node's process alone, and blanked in whatever a provider answers"""
    assert seen.keys_sent == {f"Bearer {KEY}"}
    for kind in KINDS:
        found = seen.told[kind]["found"]
        assert found["places"] == []
        assert found["read"] > 20
        assert KEY not in seen.inspected[kind]
        assert KEY not in str(seen.told[kind]["answers"])
        stored = [path for path in seen.stages[kind].store_folder.rglob("*") if path.is_file()]
        assert len(stored) > 5
        assert not [path.name for path in stored if KEY.encode() in path.read_bytes()]


def test_a_neighbour_on_the_bridge(seen: Seen) -> None:
    """N1 | another trial's container on the same bridge, in both directions
    | traffic between containers is off"""
    for kind, other in (("public", "harbor"), ("harbor", "public")):
        there, here = (f"{seen.addresses[it]} {SERVED}" for it in (other, kind))
        assert words(seen, kind, there) == {f"tcp {there}": "timeout"}
        assert words(seen, kind, here) == {f"tcp {here}": "done"}, "it listens"


def test_forged_frames_reach_no_neighbour(seen: Seen) -> None:
    """N2 | a neighbour by frames of its own making, as itself or in another's name, past the
    container's own routing | the filter looks at bridged packets too"""
    assert seen.told["forged"]["frames"] == "done"
    assert seen.heard == {"public": ["the node"], "harbor": ["the node"]}
    assert "into the world" in seen.world, "such frames are good ones"


def test_forged_frames_reach_no_service_of_the_node(seen: Seen) -> None:
    """N3 | the node by such frames, and by IPv6, which the bridge does not have
    | rules of both versions drop what comes in by the bridge"""
    assert seen.host == []
    assert seen.dropped_v6 > 0 or not outside.has_ipv6()


def test_a_hardened_container_makes_no_frames(seen: Seen) -> None:
    """N4 | forged frames and packets, ARP among them, from a Buzz-native task
    | all capabilities are dropped, CAP_NET_RAW among them"""
    assert seen.told["unable"]["frames"] == "EPERM"
    for kind in ("sealed", "public"):
        assert seen.told[kind]["acts"]["a raw socket"] == "EPERM"
        assert seen.told[kind]["acts"]["a packet socket"] == "EPERM"


def test_a_verifier_sees_evidence_and_nothing_else(seen: Seen) -> None:
    """T1 | tests that reach out of their container, or change what they judge
    | a fresh container without network, relay, gateway, keys or logs; all but its own folder
    is read-only"""
    for kind in ("sealed", "public"):
        told = seen.details(kind)
        assert told["interfaces"] == ["lo"]
        assert {told["relay"], told["gateway"]} <= {"OSError", "ConnectionRefusedError"}
        assert told["tests"] == told["evidence"] == "OSError", "a read-only file system"
        assert told["logs"] == ["artifacts", "verifier"]
        assert not [name for name in told["variables"] if name.startswith(("APIARY", "BUZZ"))]


def test_whatever_they_tried_the_trials_were_judged(seen: Seen) -> None:
    """A11 | a trial that is to end as the harness's fault, by all of the above at once
    | each ended with a verdict of its own"""
    causes = {kind: (end.record.verdict, end.record.cause) for kind, end in seen.ends.items()}
    assert causes["sealed"] == causes["public"] == (Verdict.PASS, Cause.NONE)
    assert causes["harbor"] == (Verdict.FAIL, Cause.WRONG), "it served nothing on its port"


def test_nothing_is_left_of_them(seen: Seen) -> None:
    """N5 | containers and folders that outlive their trial
    | teardown on every path"""
    for one in seen.stages.values():
        assert not list((one.workspace / "trials").iterdir())
