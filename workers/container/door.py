"""The door into a container: the two acts that take a privilege on the engine's kernel.

``listen``: a listening socket is bound on the loopback inside, and served from the host, so the
container needs no network. ``kill_all``: everything in it but its first process is killed. Both
are done by this process where it may (CAP_SYS_ADMIN, and the control groups' files, in the
engine's PID namespace); ``doors`` turns to a helper where it may not.
"""

from __future__ import annotations

import ctypes
import errno
import os
import socket
import threading

from workers.container import cgroup, freezer
from workers.container.interface import (
    ContainerError,
    ContainerLostError,
    Killed,
    NoDoorError,
)

_CLONE_NEWNET = 0x40000000
_BACKLOG = 128
_TIMEOUT_S = 5.0
_libc = ctypes.CDLL(None, use_errno=True)


def listen(pid: int, container: str, port: int) -> socket.socket:
    """A TCP socket listening on 127.0.0.1:``port`` inside a container.

    The caller owns it, and must close it: a listener does not notice its container's death.

    Args:
        pid: the container's first process, as the engine told it.
        container: the container's id, against which the pid is checked.
        port: TCP port.

    Raises:
        ContainerLostError: the pid is not, or no longer, the container's.
        NoDoorError: no privilege.
        ContainerError: the port is taken inside.
    """
    what = f"listen on port {port} in container {container[:12]}"
    namespace = _open_namespace(pid, container, what)
    try:
        if os.path.samestat(os.fstat(namespace), os.stat("/proc/self/ns/net")):
            raise ContainerError(f"{what}: it shares the network namespace of the host")
        listener = _listen_in(namespace, port, what)
        if not _is_still(namespace, pid, container):
            listener.close()
            raise ContainerLostError(f"{what}: the container ended meanwhile")
    finally:
        os.close(namespace)
    return listener


def kill_all(pid: int, container: str, timeout_s: float) -> Killed:
    """SIGKILL to everything in a container but its first process; blocks.

    Args:
        pid: the container's first process, as the engine told it.
        container: the container's id, against which every process is checked.
        timeout_s: how long it is tried.

    Raises:
        ContainerLostError: the pid is not, or no longer, the container's first process.
        NoDoorError: its control group cannot be seen, or not be written to.
    """
    what = f"kill everything in container {container[:12]}"
    if not cgroup.belongs(pid, container) or not cgroup.is_first(pid):
        raise ContainerLostError(f"{what}: process {pid} here is not its first: {_elsewhere()}")
    group = cgroup.group_of(pid, container, "freezer")
    if group is None:
        raise NoDoorError(f"{what}: its control group cannot be seen from here")
    try:
        done = freezer.kill_all(group, pid, timeout_s)
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENODEV):
            raise ContainerLostError(f"{what}: its control group is gone: it ended") from error
        raise NoDoorError(f"{what}: {error.strerror}: it needs root beside the engine") from error
    if not cgroup.is_first(pid):
        raise ContainerLostError(f"{what}: the container ended meanwhile")
    return done


def _is_still(namespace: int, pid: int, container: str) -> bool:
    """Whether the process is the container's and in the namespace that was entered.

    The pid could have been recycled between the engine's word and the opening of the
    namespace. The container's cgroup, looked at before and after, and the same namespace
    before and after exclude that it was entered by a stranger's pid.
    """
    try:
        now = os.stat(f"/proc/{pid}/ns/net")
    except OSError:
        return False
    return os.path.samestat(os.fstat(namespace), now) and cgroup.belongs(pid, container)


def _open_namespace(pid: int, container: str, what: str) -> int:
    """A descriptor of the network namespace of the container's process."""
    try:
        namespace = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    except (FileNotFoundError, ProcessLookupError) as error:
        raise ContainerLostError(f"{what}: no process {pid} here: {_elsewhere()}") from error
    except PermissionError as error:
        raise NoDoorError(f"{what}: {_needs()}") from error
    if not cgroup.belongs(pid, container):
        os.close(namespace)
        raise ContainerLostError(f"{what}: process {pid} is not the container's")
    return namespace


def _listen_in(namespace: int, port: int, what: str) -> socket.socket:
    """The socket, made by a thread that enters the namespace and then ends.

    A thread's namespace is its own; one that came back to a pool would carry it along.
    """
    made: list[socket.socket] = []
    failed: list[OSError] = []

    def enter() -> None:
        try:
            if _libc.setns(namespace, _CLONE_NEWNET) != 0:
                number = ctypes.get_errno()
                raise OSError(number, os.strerror(number))
            entered = os.stat("/proc/thread-self/ns/net")
            if not os.path.samestat(entered, os.fstat(namespace)):
                raise OSError(errno.ESTALE, "entered another namespace")
            made.append(_bound(port))
        except OSError as error:
            failed.append(error)

    thread = threading.Thread(target=enter, name="container-door", daemon=True)
    thread.start()
    thread.join(_TIMEOUT_S)
    if made:
        return made[0]
    if failed and failed[0].errno == errno.EPERM:
        raise NoDoorError(f"{what}: {_needs()}") from failed[0]
    reason = failed[0] if failed else f"not done within {_TIMEOUT_S:g} s"
    raise ContainerError(f"{what}: {reason}")


def _bound(port: int) -> socket.socket:
    """A listening socket in the calling thread's namespace."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", port))
        listener.listen(_BACKLOG)
    except OSError:
        listener.close()
        raise
    return listener


def _elsewhere() -> str:
    """Why a container's process may not be found."""
    return (
        "the container has ended, or the Docker engine is on another kernel or in another PID "
        "namespace (run Apiary beside it, or a door helper that APIARY_DOOR names)"
    )


def _needs() -> str:
    """What to tell whoever lacks the privilege."""
    return (
        "no privilege to enter the container's network namespace: it needs CAP_SYS_ADMIN "
        "(root) on the Docker engine's kernel and in its PID namespace, or a door helper that "
        "APIARY_DOOR names"
    )
