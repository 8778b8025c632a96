"""Containers in the place of machines and of pods, on a network of their own."""

from __future__ import annotations

import contextlib
import json
import secrets
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.base_image import base_image
from tests.deploy.images import docker

PATIENCE_S = 240.0
"""For anything to come true on a machine that others use too."""
KILL_S = 60.0

CAPABILITIES = (
    *("CHOWN", "DAC_OVERRIDE", "DAC_READ_SEARCH", "FOWNER", "FSETID", "KILL", "SETGID", "SETUID"),
    *("SETPCAP", "NET_BIND_SERVICE", "NET_RAW", "NET_ADMIN", "SYS_CHROOT", "SYS_PTRACE"),
    *("SYS_ADMIN", "MKNOD", "AUDIT_WRITE", "SETFCAP"),
)
"""Of a privileged container. Docker's own switch asks for all that there are, which a machine that
is itself confined cannot give; the engine and the door need these."""


@dataclass
class Network:
    """A network with its containers; all go with it."""

    name: str
    containers: list[str] = field(default_factory=list)
    volumes: list[str] = field(default_factory=list)

    def run(self, name: str, image: str, *options: str, command: Sequence[str] = ()) -> str:
        """Starts a container that is started again where it fails, as a kubelet does."""
        full = f"{self.name}-{name}"
        self.containers.append(full)
        docker("run", "-d", "--name", full, "--restart", "on-failure", *options, image, *command)
        return full

    def volume(self, name: str) -> str:
        """Makes an empty volume."""
        full = f"{self.name}-{name}"
        self.volumes.append(full)
        docker("volume", "create", full)
        return full

    def logs(self) -> str:
        """The end of what all containers wrote."""
        told = []
        for each in self.containers:
            done = subprocess.run(
                ["docker", "logs", "--tail", "40", each],
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=KILL_S,
                check=False,
            )
            told.append(f"--- {each}\n{done.stdout}")
        return "\n".join(told)


@contextlib.contextmanager
def network() -> Iterator[Network]:
    """A network for one test."""
    made = Network(f"apiary-test-{secrets.token_hex(4)}")
    docker("network", "create", made.name)
    try:
        yield made
    finally:
        # The last that was started goes first.
        for each in reversed(made.containers):
            _quietly("rm", "-f", "-v", each)
        for each in made.volumes:
            _quietly("volume", "rm", "-f", each)
        _quietly("network", "rm", made.name)


def _quietly(*words: str) -> None:
    subprocess.run(["docker", *words], capture_output=True, timeout=KILL_S, check=False)


def ask(container: str, *words: str) -> tuple[int, str]:
    """Runs a command in a container: status and what it wrote."""
    done = subprocess.run(
        ["docker", "exec", container, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    return done.returncode, done.stdout


def wait_for(container: str, command: Sequence[str], found: str, at: Network) -> None:
    """Waits until a command in a container succeeds and says something."""
    give_up = time.monotonic() + PATIENCE_S
    while True:
        status, told = ask(container, *command)
        if status == 0 and found in told:
            return
        assert time.monotonic() < give_up, f"{command}: {status}, {told}\n{at.logs()}"
        time.sleep(0.3)


@dataclass(frozen=True)
class Surroundings:
    """What a cluster gives to a pod."""

    images: Mapping[str, str]
    variables: Mapping[str, str]
    """Of Ray's container, over those of the pod."""
    mounts: Mapping[Path, str]
    """Of Ray's container: files of this machine, and where they are seen."""


class Pod:
    """The containers of one pod as Kubernetes starts them, in one network and process namespace.

    A volume that is empty at first is one of Docker's, writable for all, as a kubelet makes it. A
    secret is absent, which the files allow. Sidecars are waited for before the next one starts.
    """

    def __init__(
        self, at: Network, name: str, template: Mapping[str, Any], around: Surroundings
    ) -> None:
        self._at = at
        self._spec = template["spec"]
        self._around = around
        self._name = name
        self._volumes: dict[str, str] = {}
        for volume in self._spec.get("volumes", ()):
            if "emptyDir" in volume:
                self._volumes[volume["name"]] = at.volume(f"{name}-{volume['name']}")
            elif "hostPath" in volume:
                self._volumes[volume["name"]] = volume["hostPath"]["path"]
        self._ground = ""
        self.containers: dict[str, str] = {}

    def start(self, alias: str, ray_command: str) -> None:
        """Starts everything in order; the Ray container's command is KubeRay's."""
        empty = [each for each in self._volumes.values() if not each.startswith("/")]
        self._ground = self._at.run(
            f"{self._name}-ground",
            base_image(),
            *("--network", self._at.name, "--network-alias", alias, "--hostname", self._name),
            *(word for each in empty for word in ("-v", f"{each}:/volumes/{each}")),
            command=["sh", "-c", "chmod 0777 /volumes/* && exec sleep infinity"],
        )
        for container in self._spec.get("initContainers", ()):
            assert container["restartPolicy"] == "Always"
            self._start(container, [*container.get("command", ()), *container.get("args", ())])
            probe = container["startupProbe"]["exec"]["command"]
            wait_for(self.containers[container["name"]], probe, "", self._at)
        ray, *others = self._spec["containers"]
        assert not others
        command = ["/bin/bash", "-c", "--", ray_command]
        self._start(ray, command, self._around.variables, self._around.mounts)

    def _start(
        self,
        container: Mapping[str, Any],
        command: Sequence[str],
        variables: Mapping[str, str] | None = None,
        mounts: Mapping[Path, str] | None = None,
    ) -> None:
        environment = {
            each["name"]: each["value"] for each in container.get("env", ()) if "value" in each
        }
        options = ["--network", f"container:{self._ground}", *self._privilege(container)]
        if self._spec.get("shareProcessNamespace"):
            options += ["--pid", f"container:{self._ground}"]
        for name, value in {**environment, **(variables or {})}.items():
            options += ["-e", f"{name}={value}"]
        for mount in container.get("volumeMounts", ()):
            if source := self._volumes.get(mount["name"]):
                # Docker would fill an empty volume, and give it the owner that the image names.
                copied = "" if source.startswith("/") else ":nocopy"
                options += ["-v", f"{source}:{mount['mountPath']}{copied}"]
        for source_path, target in (mounts or {}).items():
            options += ["-v", f"{source_path}:{target}"]
        self.containers[container["name"]] = self._at.run(
            f"{self._name}-{container['name']}",
            self._around.images[container["image"]],
            *options,
            command=command,
        )

    def _privilege(self, container: Mapping[str, Any]) -> list[str]:
        context = {**self._spec.get("securityContext", {}), **container["securityContext"]}
        options = ["--user", str(context["runAsUser"])]
        if context.get("privileged"):
            for name in CAPABILITIES:
                options += ["--cap-add", name]
            for what in ("seccomp", "apparmor", "systempaths"):
                options += ["--security-opt", f"{what}=unconfined"]
            options += ["--device-cgroup-rule", "a *:* rwm"]
            if not any(each["mountPath"] == "/sys/fs/cgroup" for each in container["volumeMounts"]):
                options += ["-v", "/sys/fs/cgroup:/sys/fs/cgroup"]
            return options
        for name in context["capabilities"].get("add", ()):
            options += ["--cap-add", name]
        assert context["capabilities"]["drop"] == ["ALL"]
        return [*options, "--cap-drop", "ALL", "--security-opt", "no-new-privileges"]


def address_of(container: str) -> str:
    """A container's address on its network."""
    (told,) = json.loads(docker("inspect", container))
    (attached,) = told["NetworkSettings"]["Networks"].values()
    found: str = attached["IPAddress"]
    return found
