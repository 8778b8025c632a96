"""A network that stands in for the world outside the node, and listeners of the node itself.

The world is a network namespace with a server in it, which ends with this process and takes its
link and routes along. It has an address of the documentation's, and those at which clouds serve
their metadata, so that what bars these can be told from nobody being there. Its routes hold for
what comes from the bridge, and for the node itself where it speaks from ``SOURCE``: a node that
is in a cloud needs the real ones meanwhile.
"""

from __future__ import annotations

import contextlib
import json
import secrets
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import IO

INTERNET = "198.51.100.7"
_NEAR, _FAR = "198.51.100.1", "198.51.100.2"
_NEAR_6, _FAR_6 = "fd00:a91a::1", "fd00:a91a::2"
SOURCE = {"4": _NEAR, "6": _NEAR_6}
"""The addresses from which the node reaches the world."""
METADATA = ("169.254.169.254", "169.254.170.2", "100.100.100.200", "192.0.0.192", "168.63.129.16")
METADATA_6 = "fd00:ec2::254"
RESOLVER = "168.63.129.16"
"""Azure's metadata, whose address also resolves names."""
HTTP, ECHO, DNS = 80, 7, 53
DOCKER_PORTS = (2375, 2376)
PATIENCE_S = 20

_SERVER = """
import ctypes, os, signal, socket, subprocess, sys, threading
libc = ctypes.CDLL(None, use_errno=True)
libc.prctl(1, int(signal.SIGKILL), 0, 0, 0)
if libc.unshare(0x40000000) < 0:
    raise OSError(ctypes.get_errno(), "no network namespace of its own")
print("apart", flush=True)
commands, addresses = map(eval, sys.stdin.readline().split("|"))
for command in commands:
    subprocess.run(["ip", *command.split()], check=True)
def web(server):
    while True:
        server.accept()[0].close()
def echo(server):
    while True:
        data, sender = server.recvfrom(1000)
        print(data.decode(), flush=True)
        server.sendto(data, sender)
for address in addresses:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    server = socket.create_server((address, 80), family=family)
    threading.Thread(target=web, args=(server,), daemon=True).start()
    for port in (7, 53):
        server = socket.socket(family, socket.SOCK_DGRAM)
        server.bind((address, port))
        threading.Thread(target=echo, args=(server,), daemon=True).start()
print("serving", flush=True)
signal.pause()
"""


def has_ipv6() -> bool:
    """Whether this kernel speaks IPv6."""
    return Path("/proc/net/if_inet6").exists()


class World:
    """The world outside, and what it heard."""

    def __init__(self) -> None:
        self.heard: list[str] = []

    def hear(self, stream: IO[str]) -> None:
        """Notes every datagram until the stream ends."""
        self.heard += (line.strip() for line in stream)


@contextlib.contextmanager
def world() -> Iterator[World]:
    """Reached from this node by routes; gone at the end, or when this process dies."""
    token = secrets.token_hex(3)
    near, far = f"ap-n{token}", f"ap-f{token}"
    inside = [
        "link set lo up",
        f"address add {_FAR}/24 dev {far}",
        f"link set {far} up",
        f"route add default via {_NEAR}",
    ]
    addresses = [INTERNET, *METADATA]
    if has_ipv6():
        inside += [f"-6 address add {_FAR_6}/64 dev {far} nodad"]
        inside += [f"-6 route add default via {_NEAR_6}"]
        addresses.append(METADATA_6)
    # An address of IPv6 that has not been asked about yet cannot be bound.
    inside += [f"address add {it} dev lo {'nodad' if ':' in it else ''}" for it in addresses]
    with (
        subprocess.Popen(
            [sys.executable, "-c", _SERVER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as server,
        contextlib.ExitStack() as stack,
    ):
        assert server.stdin is not None and server.stdout is not None  # both were asked for
        try:
            assert server.stdout.readline() == "apart\n"
            _ip(f"link add {near} type veth peer name {far} netns {server.pid}")
            _ip(f"address add {_NEAR}/24 dev {near}")
            _ip(f"link set {near} up")
            server.stdin.write(f"{inside!r}|{addresses!r}\n")
            server.stdin.flush()
            assert server.stdout.readline() == "serving\n"
            if has_ipv6():
                _ip(f"-6 address add {_NEAR_6}/64 dev {near} nodad")
            stack.enter_context(_routed(addresses, near))
            made = World()
            listener = threading.Thread(target=made.hear, args=(server.stdout,))
            listener.start()
            yield made
        finally:
            server.kill()
            server.wait(PATIENCE_S)
    listener.join(PATIENCE_S)


@contextlib.contextmanager
def _routed(addresses: list[str], near: str) -> Iterator[None]:
    """Routes addresses into the world, for what comes from the bridge or from ``SOURCE``."""
    table = 10_000 + secrets.randbelow(10_000)
    with contextlib.ExitStack() as stack:
        for version in ("4", "6") if has_ipv6() else ("4",):
            for whose in ("iif apiary0", f"from {SOURCE[version]}"):
                rule = f"{whose} lookup {table} priority 100"
                _ip(f"-{version} rule add {rule}")
                stack.callback(_ip, f"-{version} rule del {rule}")
        for address in addresses:
            version, far, size = ("6", _FAR_6, 128) if ":" in address else ("4", _FAR, 32)
            _ip(f"-{version} route add {address}/{size} via {far} dev {near} table {table}")
        yield


def _ip(command: str) -> None:
    subprocess.run(["ip", *command.split()], check=True, timeout=PATIENCE_S)


class Host:
    """Listeners on every address of this node."""

    def __init__(self, tcp: int, udp: socket.socket) -> None:
        self.tcp = tcp
        self.udp = udp.getsockname()[1]
        self._udp = udp

    def heard(self) -> list[bytes]:
        """The datagrams that came until now."""
        found = []
        with contextlib.suppress(BlockingIOError):
            while True:
                found.append(self._udp.recv(1000))
        return found


@contextlib.contextmanager
def host() -> Iterator[Host]:
    """Listens; on Docker's own ports too, unless somebody has one of them already."""
    with contextlib.ExitStack() as stack:
        tcp = stack.enter_context(socket.create_server(("0.0.0.0", 0), backlog=64))
        for port in DOCKER_PORTS:
            with contextlib.suppress(OSError):
                stack.enter_context(socket.create_server(("0.0.0.0", port), backlog=64))
        family, anywhere = (socket.AF_INET6, "::") if has_ipv6() else (socket.AF_INET, "0.0.0.0")
        udp = stack.enter_context(socket.socket(family, socket.SOCK_DGRAM))
        udp.bind((anywhere, 0))
        udp.setblocking(False)
        yield Host(tcp.getsockname()[1], udp)


def host_addresses() -> list[str]:
    """This node's IPv4 addresses, the bridges' among them, without loopback."""
    told = json.loads(subprocess.check_output(["ip", "-json", "-4", "address"]))
    found = [entry["local"] for link in told for entry in link["addr_info"]]
    return [address for address in found if not address.startswith("127.")]


def link_local_of_host() -> list[str]:
    """This node's link-local IPv6 addresses."""
    told = json.loads(subprocess.check_output(["ip", "-json", "-6", "address"]))
    found = [entry["local"] for link in told for entry in link["addr_info"]]
    return [address for address in found if address.startswith("fe80:")]
