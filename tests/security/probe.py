"""What hostile code tries from inside a container: it is run there, and prints what came of it.

Standard library only: the image's Python runs it, 3.10 or later. Its one argument is a JSON
object, its output another: to each try ``done``, or the name of the error that ended it.
"""

from __future__ import annotations

import concurrent.futures
import ctypes
import errno
import json
import os
import socket
import struct
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

SOCKETS = (
    "/var/run/docker.sock",
    "/run/docker.sock",
    "/run/containerd/containerd.sock",
    "/run/podman/podman.sock",
    "/var/run/crio/crio.sock",
)
KERNEL_FILES = (
    "/proc/sys/kernel/core_pattern",
    "/proc/sys/kernel/modprobe",
    "/proc/sys/net/ipv4/ip_forward",
    "/proc/sys/vm/overcommit_memory",
    "/proc/sysrq-trigger",
    "/sys/kernel/mm/transparent_hugepage/enabled",
)
PATIENCE_S = 1.5
SYSCALLS = {"x86_64": {"bpf": 321, "add_key": 248}, "aarch64": {"bpf": 280, "add_key": 217}}
CLONE = {"user": 0x10000000, "mount": 0x00020000, "network": 0x40000000}
ATTACH = 16
SET_FLAGS = 0x8914
GROUPS = "/sys/fs/cgroup/memory" if os.path.isdir("/sys/fs/cgroup/memory") else "/sys/fs/cgroup"

libc = ctypes.CDLL(None, use_errno=True)


def word(act: Callable[[], object]) -> str:
    """``done``, or why not."""
    try:
        act()
    except socket.gaierror:
        return "no name"
    except TimeoutError:
        return "timeout"
    except OSError as error:
        return errno.errorcode.get(error.errno or 0, type(error).__name__)
    return "done"


def checked(result: int) -> int:
    if result < 0:
        raise OSError(ctypes.get_errno(), "refused")
    return result


def connect(target: str, sources: Mapping[str, str]) -> None:
    """Protocol, host, port; ``udp`` must be answered. The source may depend on the IP version."""
    protocol, host, port = target.split()
    kind = socket.SOCK_STREAM if protocol == "tcp" else socket.SOCK_DGRAM
    family, _, _, _, address = socket.getaddrinfo(host, int(port), type=kind)[0]
    with socket.socket(family, kind) as link:
        link.settimeout(PATIENCE_S)
        source = sources.get("6" if family == socket.AF_INET6 else "4")
        if source:
            link.bind((source, 0))
        link.connect(address)
        if protocol == "udp":
            link.send(b"anybody there?")
            link.recv(100)


def write(path: str) -> None:
    with open(path, "rb") as stream:
        text = stream.read(1000) if path.startswith("/proc/sys/") else b""
    with open(path, "wb") as stream:
        stream.write(text or b"0")


def apart(flags: int) -> None:
    """Asks for a namespace, in a child that ends at once."""
    pid = os.fork()
    if pid == 0:
        refused = libc.unshare(flags) < 0
        os._exit(ctypes.get_errno() if refused else 0)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if code:
        raise OSError(code, "refused")


def host_disk() -> None:
    """Makes the node's own disk, by its number, and opens it."""
    with open("/proc/partitions") as stream:
        numbers = [row.split()[:2] for row in stream.read().splitlines()[2:]]
    path = f"/tmp/disk-{os.getpid()}"
    os.mknod(path, 0o060600, os.makedev(*map(int, numbers[0])))
    os.close(os.open(path, os.O_RDONLY))


def syscall(name: str) -> None:
    number = SYSCALLS[os.uname().machine][name]
    checked(libc.syscall(number, b"user", b"mine", b"x", 1, -2))


def mount(kind: str) -> None:
    os.makedirs("/tmp/on", exist_ok=True)
    checked(libc.mount(b"none", b"/tmp/on", kind.encode(), 0, None))


def interface_down(name: str) -> None:
    with socket.socket() as any_socket:
        checked(libc.ioctl(any_socket.fileno(), SET_FLAGS, name.encode() + bytes(36)))


ACTS: dict[str, Callable[[], object]] = {
    "mount a file system": lambda: mount("tmpfs"),
    "mount the kernel's control groups": lambda: mount("cgroup"),
    "take /proc's cover away": lambda: checked(libc.umount2(b"/proc/sys", 2)),
    "a user namespace": lambda: apart(CLONE["user"]),
    "a mount namespace": lambda: apart(CLONE["mount"]),
    "a network namespace": lambda: apart(CLONE["network"]),
    "the host's name": lambda: checked(libc.sethostname(b"taken", 5)),
    "the clock": lambda: time.clock_settime(time.CLOCK_REALTIME, time.time()),
    "the node's disk": host_disk,
    "the node's memory": lambda: os.close(os.open("/dev/mem", os.O_RDONLY)),
    "a program in the kernel": lambda: syscall("bpf"),
    "the kernel's keys": lambda: syscall("add_key"),
    "a raw socket": lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 255).close(),
    "a packet socket": lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW).close(),
    "a control group of its own": lambda: os.mkdir(f"{GROUPS}/mine"),
    "an interface's state": lambda: interface_down("eth0"),
}


def processes() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def read(path: str, most: int = 1 << 20) -> bytes:
    with open(path, "rb") as stream:
        return stream.read(most)


def command(pid: int) -> str:
    try:
        return read(f"/proc/{pid}/cmdline").replace(b"\0", b" ").decode("utf-8", "replace")
    except OSError:
        return ""


def attach(pid: int) -> None:
    checked(libc.ptrace(ATTACH, pid, None, None))


def peek(pid: int) -> dict[str, str]:
    """What code beside an agent may do to one of its processes."""
    return {
        "environment": word(lambda: read(f"/proc/{pid}/environ")),
        "memory": word(lambda: read(f"/proc/{pid}/mem", 1)),
        "descriptors": word(lambda: os.close(os.open(f"/proc/{pid}/fd/1", os.O_WRONLY))),
        "ptrace": word(lambda: attach(pid)),
    }


def found(wanted: bytes, roots: Sequence[str]) -> dict[str, Any]:
    """Where a text stands: any process's variables and words, and files."""
    paths = [f"/proc/{pid}/{name}" for pid in processes() for name in ("environ", "cmdline")]
    for root in roots:
        for folder, _, files in os.walk(root):
            paths += [os.path.join(folder, name) for name in files]
    places, read_ones = [], 0
    for path in paths:
        try:
            data = read(path)
        except OSError:
            continue
        read_ones += 1
        if wanted in data:
            places.append(path)
    return {"places": places, "read": read_ones}


def talk(request: Mapping[str, Any]) -> str:
    """Sends bytes to the gateway and gives all that comes back."""
    with socket.create_connection(("localhost", request["port"]), 10) as link:
        link.sendall(request["bytes"].encode("latin-1"))
        link.settimeout(5)
        data = b""
        while True:
            piece = link.recv(65536)
            data += piece
            if not piece:
                return data.decode("latin-1")


def total(data: bytes) -> int:
    """The Internet checksum (RFC 1071)."""
    data += b"\0" * (len(data) % 2)
    value = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while value >> 16:
        value = (value & 0xFFFF) + (value >> 16)
    return ~value & 0xFFFF or 0xFFFF


def datagram(source: str, target: str, port: int, text: bytes, family: int) -> bytes:
    """A UDP packet of either version, with its checksums."""
    ends = socket.inet_pton(family, source) + socket.inet_pton(family, target)
    head = struct.pack("!HHH", 4711, port, 8 + len(text))
    pseudo = ends + struct.pack("!IxxxB", 8 + len(text), 17)
    if family == socket.AF_INET:
        pseudo = ends + struct.pack("!xBH", 17, 8 + len(text))
    udp = head + struct.pack("!H", total(pseudo + head + b"\0\0" + text)) + text
    if family == socket.AF_INET6:
        return struct.pack("!IHBB", 6 << 28, len(udp), 17, 64) + ends + udp
    start = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(udp), 1, 0, 64, 17, 0) + ends
    return start[:10] + struct.pack("!H", total(start)) + start[12:] + udp


def frames(wanted: Sequence[Sequence[Any]]) -> None:
    """Puts packets on the wire that the kernel would not send."""
    mine = bytes.fromhex(read("/sys/class/net/eth0/address").decode().strip().replace(":", ""))
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as wire:
        wire.bind(("eth0", 0))
        for to, source, target, port, text in wanted:
            family = socket.AF_INET6 if ":" in target else socket.AF_INET
            kind = b"\x86\xdd" if ":" in target else b"\x08\x00"
            packet = datagram(source, target, port, text.encode(), family)
            wire.send(bytes.fromhex(to.replace(":", "")) + mine + kind + packet)


def main(asked: Mapping[str, Any]) -> dict[str, Any]:
    told: dict[str, Any] = {}
    with concurrent.futures.ThreadPoolExecutor(40) as pool:
        targets, sources = asked.get("reach", []), asked.get("from", {})
        words = pool.map(lambda target: word(partial(connect, target, sources)), targets)
        told["reach"] = dict(zip(targets, words, strict=True))
    if asked.get("acts"):
        told["acts"] = {name: word(act) for name, act in ACTS.items()}
        told["written"] = [path for path in KERNEL_FILES if word(partial(write, path)) == "done"]
        told["sockets"] = [path for path in SOCKETS if os.path.lexists(path)]
        told["interfaces"] = sorted(os.listdir("/sys/class/net"))
        told["names"] = word(lambda: socket.getaddrinfo("example.org", 80))
        told["strangers"] = [name for name in map(command, processes()) if "dockerd" in name]
    if asked.get("agents"):
        # A thread of another cannot be attached to: this one process asks of all others.
        others = [pid for pid in processes() if "workers.agent" in command(pid)]
        told["agents"] = {str(pid): peek(pid) for pid in others}
        told["variables"] = sorted(os.environ)
    if "backwards" in asked:
        told["found"] = found(asked["backwards"][::-1].encode(), asked["roots"])
    told["answers"] = [talk(request) for request in asked.get("talk", [])]
    if asked.get("frames"):
        told["frames"] = word(lambda: frames(asked["frames"]))
    return told


if __name__ == "__main__":
    sys.stdout.write(json.dumps(main(json.loads(sys.argv[1]))))
