from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.base_image import base_image
from tests.workers.container.engines import Bench, docker, eventually, spec
from workers.container.interface import ContainerError
from workers.container.network import BRIDGE, RULES
from workers.container.settings import NETWORK

pytestmark = [pytest.mark.docker, pytest.mark.alone]
TIMEOUT_S = 60.0

REACH = """
import concurrent.futures, json, socket, sys
def reach(target):
    host, port = target.split(":")
    try:
        socket.create_connection((host, int(port)), 1.5).close()
        return "open"
    except OSError as error:
        return type(error).__name__
with concurrent.futures.ThreadPoolExecutor(20) as pool:
    print(json.dumps(list(pool.map(reach, sys.argv[1:]))))
"""


@contextlib.contextmanager
def host_server() -> Iterator[int]:
    """A listener on every address of this host."""
    with socket.create_server(("0.0.0.0", 0), backlog=16) as server:
        yield server.getsockname()[1]


def host_addresses() -> list[str]:
    """This host's own IPv4 addresses, the bridges' among them, without loopback."""
    told = json.loads(subprocess.check_output(["ip", "-json", "-4", "address"]))
    found = [entry["local"] for link in told for entry in link["addr_info"]]
    return [address for address in found if not address.startswith("127.")]


def iptables(*words: str) -> str:
    done = subprocess.run(["iptables", "-w", "5", *words], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def link_local_drops() -> int:
    """Packets that the rule for link-local addresses has dropped."""
    rows = iptables("-L", "DOCKER-USER", "-v", "-x", "-n").splitlines()
    return sum(int(row.split()[0]) for row in rows if "169.254.0.0/16" in row and BRIDGE in row)


def test_a_public_container_reaches_neither_the_host_nor_link_local(bench: Bench) -> None:
    async def scenario() -> None:
        async with bench.engine() as engine:
            with host_server() as port:
                # The bridge must be there for its own address to be among the targets.
                first = await engine.start(spec("sleep", "1000", network="public"), TIMEOUT_S)
                targets = [f"{address}:{port}" for address in host_addresses()]
                assert len(targets) >= 2
                drops = link_local_drops()
                probe = spec(
                    "python3", "-c", REACH, *targets, "169.254.169.254:80", network="public"
                )
                state, output = await engine.run_once(probe, TIMEOUT_S)
                assert state.exit_code == 0
                assert json.loads(output) == ["TimeoutError"] * (len(targets) + 1)
                assert link_local_drops() > drops

                # That nothing was reached is the rule's doing, and a rule taken away is set again.
                iptables("-D", "INPUT", *RULES[0].match)
                gateway = docker(
                    "inspect", "-f", "{{.NetworkSettings.Networks.apiary.Gateway}}", first.id
                )
                inside = ["exec", first.id, "python3", "-c", REACH, f"{gateway}:{port}"]
                assert json.loads(docker(*inside)) == ["open"]
                again, output = await engine.run_once(probe, TIMEOUT_S)
                assert json.loads(output) == ["TimeoutError"] * (len(targets) + 1)
                assert again.exit_code == 0
                await first.remove(TIMEOUT_S)

    asyncio.run(scenario())


SERVE = "import socket\ns = socket.create_server(('0.0.0.0', 8000))\nwhile True: s.accept()"


def test_public_containers_do_not_reach_each_other_nor_published_ports(bench: Bench) -> None:
    async def scenario() -> None:
        async with bench.engine() as engine:
            peer = await engine.start(spec("python3", "-c", SERVE, network="public"), TIMEOUT_S)
            address = docker(
                "inspect", "-f", "{{.NetworkSettings.Networks.apiary.IPAddress}}", peer.id
            )
            label = f"apiary.network=test-{bench.node}"
            other = docker(
                *("run", "--detach", "--label", label, "--publish", "8000"),
                *(base_image(), "python3", "-c", SERVE),
            )
            try:
                published = docker("port", other, "8000/tcp").splitlines()[0].rpartition(":")[2]
                inner = docker(
                    "inspect", "-f", "{{.NetworkSettings.Networks.bridge.IPAddress}}", other
                )
                host = host_addresses()
                await asyncio.to_thread(eventually, lambda: reachable(inner, 8000))
                targets = [
                    f"{address}:8000",
                    f"{inner}:8000",
                    *(f"{it}:{published}" for it in host),
                ]
                _, output = await engine.run_once(
                    spec("python3", "-c", REACH, *targets, network="public"), TIMEOUT_S
                )
                assert json.loads(output) == ["TimeoutError"] * len(targets)
            finally:
                docker("rm", "--force", other)
            await peer.remove(TIMEOUT_S)

    asyncio.run(scenario())


def reachable(host: str, port: int) -> bool:
    """Whether this host itself reaches a port: what tests above are refused does exist."""
    with contextlib.suppress(OSError):
        socket.create_connection((host, port), 5).close()
        return True
    return False


def test_without_rules_no_public_container_is_started(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    async def scenario() -> None:
        async with bench.engine() as engine:
            monkeypatch.setenv("PATH", str(tmp_path))  # no iptables there
            with pytest.raises(ContainerError, match="fence the network apiary"):
                await engine.start(spec("true", network="public"), TIMEOUT_S)
            monkeypatch.undo()
            refusing = tmp_path / "iptables"
            refusing.write_text("#!/bin/sh\necho not permitted >&2; exit 4\n")
            refusing.chmod(0o755)
            monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
            with pytest.raises(ContainerError, match="not permitted; without its rules"):
                await engine.start(spec("true", network="public"), TIMEOUT_S)
            monkeypatch.undo()

    asyncio.run(scenario())


def test_network_and_rules_go_with_their_last_user(bench: Bench) -> None:
    async def scenario() -> None:
        async with bench.engine() as one:
            await one.run_once(spec("true", network="public"), TIMEOUT_S)
            async with bench.engine() as other:
                await other.run_once(spec("true", network="public"), TIMEOUT_S)
            assert NETWORK in networks()
            assert BRIDGE in iptables("-S")
        assert NETWORK not in networks()
        assert BRIDGE not in iptables("-S")

    asyncio.run(scenario())


def networks() -> list[str]:
    return docker("network", "ls", "--format", "{{.Name}}").splitlines()


def test_a_network_of_the_same_name_that_is_not_fenced_is_refused(bench: Bench) -> None:
    async def scenario() -> None:
        async with bench.engine() as engine:
            with pytest.raises(ContainerError, match="not the fenced bridge"):
                await engine.start(spec("true", network="public"), TIMEOUT_S)

    docker("network", "create", "--label", f"apiary.network=test-{bench.node}", NETWORK)
    try:
        asyncio.run(scenario())
    finally:
        docker("network", "rm", NETWORK)
