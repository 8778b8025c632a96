"""The node-wide bridge of containers with a public network, fenced by rules of ours.

Docker's ``enable_icc=false`` keeps containers from each other, but leaves the host's own
ports, the ports that other containers publish, and link-local addresses (a cloud's metadata
service) open. So every packet that comes in by the bridge is dropped if it is for this host,
for a link-local address or another known one of metadata, or redirected by the host. The rules
name the bridge and not an address: they are set before it exists and hold for whatever it will be
given.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from workers.container.api import DockerApi, MissingError
from workers.container.calls import Deadline
from workers.container.interface import ContainerError
from workers.container.locks import lock_file, try_lock
from workers.container.settings import NETWORK

BRIDGE = "apiary0"
LABEL = "apiary.network"
_PUBLIC = "public"
_ICC = "com.docker.network.bridge.enable_icc"
_NAME = "com.docker.network.bridge.name"
_POLL_S = 0.02


class Rule(NamedTuple):
    """One packet filter rule."""

    program: str
    chain: str
    match: tuple[str, ...]


RULES = (
    # To an address of the host, whichever one.
    Rule("iptables", "INPUT", ("-i", BRIDGE, "-j", "DROP")),
    # To a published port of another container: by then the address is rewritten.
    Rule(
        "iptables",
        "DOCKER-USER",
        ("-i", BRIDGE, "-m", "conntrack", "--ctstate", "DNAT", "-j", "DROP"),
    ),
    Rule("iptables", "DOCKER-USER", ("-i", BRIDGE, "-d", "169.254.0.0/16", "-j", "DROP")),
    # Metadata services of clouds that have them elsewhere: Alibaba's, Oracle's, and Azure's, whose
    # address also resolves names.
    Rule("iptables", "DOCKER-USER", ("-i", BRIDGE, "-d", "100.100.100.200", "-j", "DROP")),
    Rule("iptables", "DOCKER-USER", ("-i", BRIDGE, "-d", "192.0.0.192", "-j", "DROP")),
    Rule(
        "iptables",
        "DOCKER-USER",
        ("-i", BRIDGE, "-d", "168.63.129.16", "-p", "tcp", "!", "--dport", "53", "-j", "DROP"),
    ),
)
RULES_V6 = (
    # The bridge has no IPv6, but a container with raw sockets can speak it.
    Rule("ip6tables", "INPUT", ("-i", BRIDGE, "-j", "DROP")),
    Rule("ip6tables", "FORWARD", ("-i", BRIDGE, "-j", "DROP")),
)

SURE_S = 1.0
"""How long rules and bridge are taken for what they were when they were looked at."""


class PublicNetwork:
    """The bridge, as one engine sees it. All methods block: call them in a thread.

    Every process that has used the bridge holds a shared lock on it until it closes; only a
    process that can take the lock alone removes the bridge and then the rules.
    """

    def __init__(self, api: DockerApi, directory: Path) -> None:
        self._api = api
        self._directory = directory
        self._used: int | None = None
        self._sure_until = 0.0

    @property
    def used(self) -> bool:
        """Whether this engine has used the bridge, and not given it up."""
        return self._used is not None

    def ensure(self, deadline: Deadline) -> None:
        """Makes sure of rules and bridge; to be called before each start of a container.

        What was seen a moment ago holds for the starts that come with it: to look takes a dozen
        programs one after another. A rule that somebody takes away is set again for all
        containers, those that run too, so it is the next look that counts and not the start.

        Raises:
            ContainerError: it could not; then no container may be started on it.
        """
        if time.monotonic() < self._sure_until:
            return
        with self._changing(deadline):
            if time.monotonic() < self._sure_until:
                return  # Another thread was here first.
            if self._used is None:
                self._used = self._open_use_lock(deadline)
            network = _find(self._api, deadline)
            if network is not None:
                _check(network)
            for rule in _rules():
                _set(rule, deadline)
            if network is None:
                self._api.create_network(_body(), deadline.left_s())
            self._sure_until = time.monotonic() + SURE_S

    def close(self, deadline: Deadline) -> bool:
        """Gives up the use, and removes bridge and rules if nobody else uses them.

        Also for a process that has not used them: it removes what a dead one left.

        Returns:
            Whether our bridge is gone.
        """
        with self._changing(deadline):
            self._sure_until = 0.0
            used, self._used = self._used, None
            if used is None:
                used = self._open_use_lock(deadline)
            try:
                return try_lock(used) and remove_unused(self._api, deadline)
            finally:
                os.close(used)

    def _open_use_lock(self, deadline: Deadline) -> int:
        """A descriptor that holds the shared lock of users."""
        path = lock_file(self._directory, "network in use")
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        # Whoever holds it alone also holds the lock of changers, which we have.
        if not try_lock(descriptor, fcntl.LOCK_SH):
            os.close(descriptor)
            raise ContainerError(f"{deadline.what}: the lock of network {NETWORK} is not free")
        return descriptor

    @contextlib.contextmanager
    def _changing(self, deadline: Deadline) -> Iterator[None]:
        """Holds the lock of those who change bridge or rules."""
        path = lock_file(self._directory, "network change")
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            # Held for a handful of short calls; but its holder may be stopped by somebody.
            while not try_lock(descriptor):
                time.sleep(min(_POLL_S, deadline.left_s()))
            yield
        finally:
            os.close(descriptor)


def remove_unused(api: DockerApi, deadline: Deadline) -> bool:
    """Removes the bridge and then the rules, unless a container is attached.

    Returns:
        Whether our bridge is gone.
    """
    network = _find(api, deadline)
    if network is not None and (network["Labels"] or {}).get(LABEL) == _PUBLIC:
        if network["Containers"]:
            return False
        try:
            api.remove_other("networks", NETWORK, deadline.left_s())
        except MissingError:
            pass
        except ContainerError:  # status 403 if a container was attached a moment ago
            if (_find(api, deadline) or {}).get("Containers"):
                return False
            raise
    for rule in _rules():
        _unset(rule, deadline)
    return True


def _find(api: DockerApi, deadline: Deadline) -> Any:
    """What the engine tells of the network, None if there is none of its name."""
    try:
        return api.network(NETWORK, deadline.left_s())
    except MissingError:
        return None


def fence_problem(deadline: Deadline) -> str:
    """Why the rules cannot be set on this host, empty if they can; changes nothing."""
    for program, chain in dict.fromkeys((rule.program, rule.chain) for rule in _rules()):
        try:
            status, told = _iptables((program, "-w", "5", "-S", chain), deadline)
        except ContainerError as error:
            return str(error)
        if status != 0:
            return f"{program} -S {chain} ended with {status}: {told}"
    return ""


def _rules() -> tuple[Rule, ...]:
    """The rules that this kernel needs."""
    return RULES + (RULES_V6 if Path("/proc/net/if_inet6").exists() else ())


def _set(rule: Rule, deadline: Deadline) -> None:
    """Puts a rule first in its chain unless the chain has it."""
    if not _has(rule, deadline):
        _run(rule, "-I", deadline)


def _unset(rule: Rule, deadline: Deadline) -> None:
    """Takes a rule out of its chain, however often it is there."""
    while _has(rule, deadline):
        _run(rule, "-D", deadline)


def _has(rule: Rule, deadline: Deadline) -> bool:
    """Whether the chain has the rule."""
    return _iptables((rule.program, "-w", "5", "-C", rule.chain, *rule.match), deadline)[0] == 0


def _run(rule: Rule, action: str, deadline: Deadline) -> None:
    """Changes a chain."""
    command = (rule.program, "-w", "5", action, rule.chain, *rule.match)
    status, told = _iptables(command, deadline)
    if status != 0:
        raise ContainerError(
            f"fence the network {NETWORK}: {' '.join(command)} ended with {status}: {told}; "
            "without its rules no container is started on it"
        )


def _iptables(command: Sequence[str], deadline: Deadline) -> tuple[int, str]:
    """Runs iptables: status and what it said."""
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=deadline.left_s(),
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ContainerError(f"fence the network {NETWORK}: {error}") from error
    return done.returncode, done.stderr.strip()


def _body() -> dict[str, Any]:
    """The body of ``POST /networks/create``."""
    return {
        "Name": NETWORK,
        "CheckDuplicate": True,
        "Driver": "bridge",
        "Labels": {LABEL: _PUBLIC},
        "Options": {_NAME: BRIDGE, _ICC: "false"},
    }


def _check(network: Any) -> None:
    """Refuses a network of that name that is not fenced as ours is."""
    options = network["Options"] or {}
    if options.get(_NAME) != BRIDGE or options.get(_ICC) != "false" or network["EnableIPv6"]:
        raise ContainerError(
            f"use the network {NETWORK}: a network of this name exists, but is not the fenced "
            "bridge of Apiary; remove it"
        )
