"""The door to the Docker engine: the only module that imports its client package.

Blocking calls, each with a timeout in seconds, one HTTP request each. The client package gives
transport (Unix socket), version negotiation and the event stream; requests are written out
here because most of its methods take no timeout and some ask the engine twice.
"""

from __future__ import annotations

import base64
import contextlib
import json
import socket
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal
from urllib.parse import quote

import docker
import docker.errors
import docker.utils
import requests
import urllib3.exceptions

from workers.container.calls import CallTimeoutError
from workers.container.interface import ContainerError, NoEngineError

Json = Any
Heard = Callable[[str, float], None]
"""Hears of a request to the engine: its verb, and seconds; from any thread."""
Kind = Literal["containers", "volumes", "networks"]

_LOCAL_SOCKET = "unix:///var/run/docker.sock"
_OPEN_TIMEOUT_S = 30
_FOREIGN = (
    docker.errors.DockerException,
    requests.exceptions.RequestException,
    urllib3.exceptions.HTTPError,
    OSError,
    ValueError,
)


class MissingError(ContainerError):
    """The engine knows no such container, image, volume, network or path."""


class ConflictError(ContainerError):
    """The engine refuses because of the state of the thing, for example 'is not running'."""


@contextlib.contextmanager
def _translated(what: str) -> Iterator[None]:
    """Turns the foreign exceptions of a call into ours."""
    try:
        yield
    except (requests.exceptions.Timeout, TimeoutError) as error:
        raise CallTimeoutError(f"{what}: the Docker engine did not answer in time") from error
    except _FOREIGN as error:
        raise ContainerError(f"{what}: {error}") from error


class DockerApi:
    """The engine's HTTP interface, for use from several threads at once."""

    def __init__(self, connections: int = 16, heard: Heard = lambda verb, seconds: None) -> None:
        """Connects to the engine that ``DOCKER_HOST`` names, else to the local socket.

        ``heard`` is told of every request, whatever came of it.

        Raises:
            ContainerError: there is none, or it is too old for the client.
        """
        with _translated("connect to the Docker engine"):
            where = docker.utils.kwargs_from_env()
            _try_socket(where.get("base_url") or _LOCAL_SOCKET)
            self._client = docker.APIClient(
                version="auto", timeout=_OPEN_TIMEOUT_S, max_pool_size=connections, **where
            )
            self._client.trust_env = False  # no look-up of proxies for each request
            self.version = str(self._client.api_version)
            self._prefix = f"{self._client.base_url}/v{self.version}"
        self.connections = connections
        self._heard = heard

    def ask(
        self,
        what: str,
        method: str,
        path: str,
        timeout_s: float,
        *,
        query: Mapping[str, str | int] | None = None,
        body: Json = None,
        stream: bool = False,
    ) -> requests.Response:
        """One request; ``what`` begins the message of any error.

        Raises:
            MissingError: status 404.
            ConflictError: status 409.
            CallTimeoutError: no answer within ``timeout_s``.
            ContainerError: any other refusal or failure.
        """
        started = time.monotonic()
        try:
            with _translated(what):
                response = self._client.request(
                    method,
                    self._prefix + path,
                    params=query,
                    json=body,
                    timeout=timeout_s,
                    stream=stream,
                )
        finally:
            self._heard(what.partition(" ")[0], time.monotonic() - started)
        if response.status_code < 400:
            return response
        with response, _translated(what):
            raise _refusal(what, response)

    def create(self, name: str, body: Json, timeout_s: float) -> str:
        """Creates a container and gives its id."""
        reply = self.ask(
            f"create container {name} of image {body['Image']}",
            "POST",
            "/containers/create",
            timeout_s,
            query={"name": name},
            body=body,
        )
        return str(reply.json()["Id"])

    def start(self, container: str, timeout_s: float) -> None:
        """Starts a created container."""
        self.ask(
            f"start container {container[:12]}", "POST", f"/containers/{container}/start", timeout_s
        )

    def inspect(self, container: str, timeout_s: float) -> Json:
        """Everything that the engine tells of a container."""
        return self.ask(
            f"inspect container {container[:12]}",
            "GET",
            f"/containers/{container}/json",
            timeout_s,
        ).json()

    def kill(self, container: str, timeout_s: float, name: str = "KILL") -> None:
        """A signal to its first process, named without ``SIG``."""
        self.ask(
            f"kill container {container[:12]}",
            "POST",
            f"/containers/{container}/kill",
            timeout_s,
            query={"signal": name},
        )

    def top(self, container: str, timeout_s: float) -> list[tuple[str, str, str]]:
        """Pid, parent's pid (both the host's) and command of each of its processes."""
        reply = self.ask(
            f"list the processes of container {container[:12]}",
            "GET",
            f"/containers/{container}/top",
            timeout_s,
            query={"ps_args": "-eo pid,ppid,args"},
        )
        return [(row[0], row[1], " ".join(row[2:])) for row in reply.json()["Processes"]]

    def prepare(
        self,
        container: str,
        command: Sequence[str],
        environment: Mapping[str, str | None],
        timeout_s: float,
        user: str = "",
    ) -> str:
        """Prepares one more command in a running container, and gives the command's id.

        Args:
            container: its id.
            command: program and arguments.
            environment: laid over the container's; None takes a variable away, which the engine
                is told by a name without a value.
            timeout_s: seconds.
            user: by name or number; empty: the container's.
        """
        variables = [
            name if value is None else f"{name}={value}" for name, value in environment.items()
        ]
        body = {"Cmd": list(command), "Env": variables, "User": user}
        what = f"prepare {command[0]} in container {container[:12]}"
        path = f"/containers/{container}/exec"
        return str(self.ask(what, "POST", path, timeout_s, body=body).json()["Id"])

    def execute(self, execution: str, timeout_s: float) -> None:
        """Starts a prepared command, detached: nobody waits for it or reads what it writes."""
        what = f"start command {execution[:12]}"
        self.ask(what, "POST", f"/exec/{execution}/start", timeout_s, body={"Detach": True})

    def execute_to_end(self, execution: str, timeout_s: float) -> None:
        """Starts a prepared command and returns at its end; what it writes is read and dropped.

        It holds a connection for so long: trials run theirs detached.
        """
        what = f"run command {execution[:12]}"
        body = {"Detach": False, "Tty": False}
        self.ask(what, "POST", f"/exec/{execution}/start", timeout_s, body=body)

    def exit_code(self, execution: str, timeout_s: float) -> int | None:
        """How a command ended, None while it runs."""
        what = f"inspect command {execution[:12]}"
        told = self.ask(what, "GET", f"/exec/{execution}/json", timeout_s).json()
        return None if told["Running"] or told["ExitCode"] is None else int(told["ExitCode"])

    def remove(self, container: str, timeout_s: float) -> None:
        """Removes a container by force, with its anonymous volumes."""
        self.ask(
            f"remove container {container[:12]}",
            "DELETE",
            f"/containers/{container}",
            timeout_s,
            query={"v": 1, "force": 1},
        )

    def output(self, container: str, timeout_s: float) -> bytes:
        """Standard output and standard error as they came; of much, what the engine kept."""
        reply = self.ask(
            f"read the output of container {container[:12]}",
            "GET",
            f"/containers/{container}/logs",
            timeout_s,
            query={"stdout": 1, "stderr": 1},
        )
        return demultiplexed(reply.content)

    @contextlib.contextmanager
    def archive(
        self, container: str, path: str, timeout_s: float
    ) -> Iterator[tuple[Json, Iterator[bytes]]]:
        """What the engine says of a path in a container, and its tar in pieces."""
        what = f"copy {path} out of container {container[:12]}"
        reply = self.ask(
            what,
            "GET",
            f"/containers/{container}/archive",
            timeout_s,
            query={"path": path},
            stream=True,
        )
        with reply, _translated(what):
            told = reply.headers.get("X-Docker-Container-Path-Stat", "")
            yield json.loads(base64.b64decode(told)), reply.iter_content(64 * 1024)

    def image_id(self, image: str, timeout_s: float) -> str:
        """The id behind an image's name.

        Raises:
            MissingError: there is no such image.
        """
        return str(self.image(image, timeout_s)["Id"])

    def image(self, image: str, timeout_s: float) -> Json:
        """Everything that the engine tells of an image, by id or tag.

        Raises:
            MissingError: there is no such image.
        """
        path = f"/images/{quote(image, safe='/:@')}/json"
        return self.ask(f"inspect image {image}", "GET", path, timeout_s).json()

    def images(self, label: str, timeout_s: float) -> list[Json]:
        """All images that carry a label."""
        query = {"filters": json.dumps({"label": [label]})}
        return list(self.ask("list images", "GET", "/images/json", timeout_s, query=query).json())

    def tag_image(self, image: str, tag: str, timeout_s: float) -> None:
        """Gives an image a tag; one that it has already is given anew, at this time."""
        repository, _, name = tag.rpartition(":")
        self.ask(
            f"tag image {image[:19]} as {tag}",
            "POST",
            f"/images/{quote(image, safe=':')}/tag",
            timeout_s,
            query={"repo": repository, "tag": name},
        )

    def remove_image(self, tag: str, prune: bool, timeout_s: float) -> None:
        """Takes a tag away, and the image with its last tag; never by force.

        Args:
            tag: the tag.
            prune: also the untagged images below it that nothing else needs.
            timeout_s: seconds.

        Raises:
            ConflictError: a container is made of it.
        """
        path = f"/images/{quote(tag, safe='/:@')}"
        query: dict[str, str | int] = {"force": 0, "noprune": int(not prune)}
        self.ask(f"remove image {tag}", "DELETE", path, timeout_s, query=query)

    def listing(self, kind: Kind, labels: Sequence[str], timeout_s: float) -> list[Json]:
        """All containers, volumes or networks that carry every one of ``labels``, if any.

        Args:
            kind: what to list; containers come in every state.
            labels: ``key`` or ``key=value``.
            timeout_s: seconds.
        """
        query: dict[str, str | int] = {"filters": json.dumps({"label": list(labels)})}
        if kind == "containers":
            path, query["all"] = "/containers/json", 1
        else:
            path = f"/{kind}"
        found = self.ask(f"list {kind}", "GET", path, timeout_s, query=query).json()
        return list((found["Volumes"] or []) if kind == "volumes" else found)

    def remove_other(
        self, kind: Literal["volumes", "networks"], name: str, timeout_s: float
    ) -> None:
        """Removes a volume or a network.

        Raises:
            ConflictError: it is in use (some engines answer 403: then ContainerError).
        """
        self.ask(f"remove {kind[:-1]} {name}", "DELETE", f"/{kind}/{quote(name)}", timeout_s)

    def create_network(self, body: Json, timeout_s: float) -> None:
        """Creates a network."""
        self.ask(f"create network {body['Name']}", "POST", "/networks/create", timeout_s, body=body)

    def network(self, name: str, timeout_s: float) -> Json:
        """Everything that the engine tells of a network."""
        return self.ask(f"inspect network {name}", "GET", f"/networks/{name}", timeout_s).json()

    def info(self, timeout_s: float) -> Json:
        """The engine's facts about itself and its host."""
        return self.ask("ask the Docker engine for its facts", "GET", "/info", timeout_s).json()

    @contextlib.contextmanager
    def events(self, since: str, label: str, kinds: Sequence[str]) -> Iterator[EventSource]:
        """The stream of container events from ``since`` on (seconds, with a fraction).

        It has a connection of its own, without a time limit; end it by ``EventSource.close``.
        """
        with _translated("open the Docker event stream"):
            client: Any = docker.APIClient(
                version=self.version,
                timeout=_OPEN_TIMEOUT_S,
                **docker.utils.kwargs_from_env(),
            )
            client.trust_env = False
        with contextlib.closing(client), _translated("read the Docker event stream"):
            filters = {"type": ["container"], "label": [label], "event": list(kinds)}
            stream = client.events(since=since, filters=filters, decode=True)
            try:
                yield EventSource(stream)
            finally:
                stream._response.close()

    def close(self) -> None:
        """Closes the connections."""
        self._client.close()


class EventSource:
    """An open event stream: iterate in one thread, close from any."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Events until the connection ends."""
        return iter(self._stream)

    def close(self) -> None:
        """Wakes the reader, whose iteration then ends."""
        # The reader may have ended the connection a moment ago: then there is nothing to wake.
        with contextlib.suppress(OSError, AttributeError, docker.errors.DockerException):
            self._stream.close()


def _try_socket(url: str) -> None:
    """Connects to a Unix socket and hangs up: the client leaks one that it cannot connect."""
    scheme, _, path = url.partition("://")
    if scheme in ("unix", "http+unix"):
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
            probe.settimeout(_OPEN_TIMEOUT_S)
            try:
                probe.connect(path)
            except OSError as error:
                why = error.strerror or error
                raise NoEngineError(f"connect to the Docker engine at {path}: {why}") from error


def _refusal(what: str, response: requests.Response) -> ContainerError:
    """The error for a status of 400 and above."""
    try:
        told = response.json()["message"]
    except (ValueError, KeyError, TypeError):
        told = response.text
    kinds: dict[int, type[ContainerError]] = {404: MissingError, 409: ConflictError}
    kind = kinds.get(response.status_code, ContainerError)
    return kind(f"{what}: {str(told).strip()} (status {response.status_code})")


def demultiplexed(data: bytes) -> bytes:
    """The payloads of Docker's framed output: 4 bytes kind, 4 bytes length, payload."""
    parts = []
    place = 0
    while place + 8 <= len(data):
        size = int.from_bytes(data[place + 4 : place + 8], "big")
        parts.append(data[place + 8 : place + 8 + size])
        place += 8 + size
    return b"".join(parts)
