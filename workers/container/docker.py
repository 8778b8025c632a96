"""Docker as the container engine."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
import secrets
import time
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import Future
from pathlib import Path
from typing import Any, Self

from workers.container import cgroup, copying, ownership
from workers.container.api import DockerApi, Heard, MissingError
from workers.container.calls import Calls, CallTimeoutError, Deadline
from workers.container.disk import has_quota, mount_table, short_of_space, writable_layer
from workers.container.doors import Doors
from workers.container.events import EventStream
from workers.container.image import ImageBuilder
from workers.container.interface import (
    ContainerError,
    ContainerSpec,
    ContainerTimeoutError,
    ExitState,
)
from workers.container.locks import node_directory
from workers.container.network import PublicNetwork
from workers.container.pace import StartPace
from workers.container.running import DockerContainer, Started
from workers.container.settings import container_body, has_own_hosts, hosts_text

_log = logging.getLogger(__name__)

_OPEN_S = 30.0
_CLEANUP_S = 30.0
_EXPIRES_S = 24 * 3600
"""After which nobody needs a container whose maker did not say when it expires."""


class DockerEngine:
    """The Docker engine of this node. Make it by ``open``, end it by ``close``."""

    def __init__(
        self,
        node: str,
        api: DockerApi,
        directory: Path,
        starts_at_once: int | None = None,
        starts_per_s: float | None = None,
        disk_free_mb: int = 0,
        door: Path | None = None,
        built: Callable[[float], None] = lambda seconds: None,
    ) -> None:
        self.node = node
        self.directory = directory
        self.api = api
        self.calls = Calls(api.connections)
        self.given_up: set[str] = set()
        """Containers that their users could not remove, by id or name: the reaper's."""
        self.has_quota = False
        """Whether the engine itself bounds what a container writes."""
        self._pace = StartPace(starts_at_once, starts_per_s)
        self._disk_free_mb = disk_free_mb
        self._root = Path("/")
        instance = secrets.token_hex(8)
        self._labels = {
            ownership.NODE: node,
            ownership.OWNER: ownership.this_process(),
            ownership.ENGINE: instance,
        }
        self._events = EventStream(api, self.calls, f"{ownership.ENGINE}={instance}")
        self._images = ImageBuilder(api, self.calls, directory, self.disk_problem, built)
        self._network = PublicNetwork(api, node_directory())
        self._doors = Doors(door)
        self._cleaning: set[asyncio.Task[None]] = set()

    @classmethod
    async def open(
        cls,
        node: str,
        threads: int = 16,
        directory: Path | None = None,
        *,
        starts_at_once: int | None = None,
        starts_per_s: float | None = None,
        disk_free_mb: int = 0,
        door: Path | None = None,
        heard: Heard = lambda verb, seconds: None,
        built: Callable[[float], None] = lambda seconds: None,
    ) -> Self:
        """Connects to the engine that ``DOCKER_HOST`` names, else to the local one.

        Args:
            node: the node's name, for labels.
            threads: how many calls to the engine may be under way at once.
            directory: for locks and shared files, the same for all of a node's processes;
                default: one per user in the system's directory for temporary files.
            starts_at_once: how many containers may be starting at any time; null: any number.
            starts_per_s: how many containers may be started a second; null: any number.
            disk_free_mb: what the engine's disk must have left, or no image is built.
            door: the socket of a door helper, where this process may not act itself.
            heard: hears of every request to the engine, from any thread.
            built: hears how many seconds each image's build took.

        Raises:
            ContainerError: the engine cannot be reached.
        """
        api = await asyncio.to_thread(DockerApi, threads, heard)
        folder = directory or node_directory()
        engine = cls(node, api, folder, starts_at_once, starts_per_s, disk_free_mb, door, built)
        try:
            await engine._events.open(_OPEN_S)
            await engine.calls.run(Deadline("ask for the engine's disk", _OPEN_S), engine._look)
        except BaseException:
            await engine.calls.close()
            api.close()
            raise
        return engine

    async def ensure_image(
        self,
        context: Path,
        *,
        tag: str,
        build_args: Mapping[str, str],
        labels: Mapping[str, str],
        timeout_s: float,
    ) -> str:
        """See ``Engine``."""
        return await self._images.ensure(
            context, tag=tag, build_args=build_args, labels=labels, timeout_s=timeout_s
        )

    async def ensure_pulled(self, reference: str, timeout_s: float) -> tuple[str, str | None]:
        """See ``Engine``."""
        return await self._images.ensure_pulled(reference, timeout_s)

    @property
    def containers(self) -> int:
        """How many it has started and not removed."""
        return self._events.watched

    def disk_problem(self) -> str:
        """Why the engine's disk has too little room; empty: it has enough, or is not seen."""
        return short_of_space(self._root, self._disk_free_mb) if self._disk_free_mb else ""

    def untidy(self) -> str:
        """Why this engine should get no more work until its reaper is through; empty: it may."""
        if not self.given_up:
            return ""
        return f"{len(self.given_up)} containers could not be removed; the reaper tries again"

    async def has_buildkit(self) -> bool:
        """Whether images are built with BuildKit here."""
        return await self._images.has_buildkit()

    async def remove_network_if_unused(self) -> None:
        """Removes the public network that a dead process left.

        Raises:
            ContainerError: it could not be removed.
        """
        if not self._network.used:
            deadline = Deadline("remove the public network", _CLEANUP_S)
            await self.calls.run(deadline, self._network.close)

    async def start(self, spec: ContainerSpec, timeout_s: float) -> DockerContainer:
        """See ``Engine``; the caller owns the container and removes it.

        A start that fails, is late or is cancelled is undone before this returns, for which
        the engine's answer is waited for. A start waits for its turn first (``StartPace``).
        """
        async with self._pace.turn():
            return await self._start(spec, timeout_s, identify=True)

    async def _start(
        self, spec: ContainerSpec, timeout_s: float, *, identify: bool
    ) -> DockerContainer:
        """Starts a container; what is not identified cannot be listened in."""
        name = f"apiary-{secrets.token_hex(8)}"
        body = container_body(spec, self._labels_of(name, spec), has_quota=self.has_quota)
        deadline = Deadline(f"start a container of image {spec.image}", timeout_s)
        launch = functools.partial(self._launch, name, spec, body, identify)
        job = self.calls.submit(deadline, launch)
        try:
            started = await self.calls.wait(job, deadline)
        except MissingError:
            self._images.forget(spec.image)
            raise
        except (asyncio.CancelledError, CallTimeoutError):
            # The job may be between two requests: it must end before its work is undone.
            try:
                await self._owned(self._undo(name, job))
            except ContainerError:
                self.given_up.add(name)
            raise
        watch = self._events.watch(started.id)
        return DockerContainer(
            started, watch, self.api, self.calls, self._events, self.given_up.add, self._doors
        )

    def _labels_of(self, name: str, spec: ContainerSpec) -> dict[str, str]:
        expires = {ownership.EXPIRES: str(int(time.time()) + _EXPIRES_S)}
        return ownership.with_proof(name, {**expires, **spec.labels, **self._labels})

    async def run_once(self, spec: ContainerSpec, timeout_s: float) -> tuple[ExitState, str]:
        """See ``Engine``."""
        async with self._pace.turn():
            deadline = Deadline(f"run a container of image {spec.image}", timeout_s)
            container = await self._start(spec, timeout_s, identify=False)
        try:
            state = await container.ended(deadline.left_s())
            if state is None:
                raise ContainerTimeoutError(deadline.fired())
            return state, await container.output(_CLEANUP_S)
        finally:
            await self._owned(container.remove(_CLEANUP_S))

    async def copy_out(
        self, image: str, path: str, target: Path, max_bytes: int, timeout_s: float = 120.0
    ) -> None:
        """See ``Engine``."""
        deadline = Deadline(f"copy {path} out of image {image}", timeout_s)
        await self.calls.run(
            deadline, functools.partial(self._copy_out, image, path, target, max_bytes)
        )

    async def close(self) -> None:
        """See ``Engine``. Containers that are still there go with it."""
        await asyncio.gather(*self._cleaning, return_exceptions=True)
        try:
            deadline = Deadline("remove what is left of this engine", _CLEANUP_S)
            await self.calls.run(deadline, self._remove_all)
        finally:
            self._images.close()
            await self._events.close()
            await self.calls.close()
            self.api.close()

    def _look(self, deadline: Deadline) -> None:
        """Asks where the engine's disk is and whether it has quotas; in a thread."""
        info = self.api.info(deadline.left_s())
        self._root = Path(info["DockerRootDir"])
        self.has_quota = has_quota(info, mount_table())

    def _launch(
        self,
        name: str,
        spec: ContainerSpec,
        body: dict[str, Any],
        identify: bool,
        deadline: Deadline,
    ) -> Started:
        """Creates and starts a container, and asks for its pid; in a thread, all or nothing."""
        if spec.network != "none":
            self._network.ensure(deadline)
        if spec.hosts_file is not None and has_own_hosts(spec):
            spec.hosts_file.write_text(hosts_text(spec))
            spec.hosts_file.chmod(0o644)
        try:
            container = self._create(name, body, deadline)
            self._events.watch_from_thread(container)
            self.api.start(container, deadline.left_s())
            told = self.api.inspect(container, deadline.left_s()) if identify else None
        except BaseException as error:
            try:
                self._discard(name)
            except ContainerError as left:
                error.add_note(f"and its container may be left: {left}")
            raise
        # The host's pid of its first process, 0 if it has ended.
        pid = int(told["State"]["Pid"]) if told else 0
        layer = writable_layer(told) if told and not self.has_quota else None
        return Started(container, pid, cgroup.counter_file(pid, container) if pid else None, layer)

    def _copy_out(
        self, image: str, path: str, target: Path, max_bytes: int, deadline: Deadline
    ) -> None:
        """Copies by way of a container that never runs; in a thread."""
        name = f"apiary-{secrets.token_hex(8)}"
        spec = ContainerSpec(image=image, command=["true"], labels={})
        try:
            container = self._create(
                name, container_body(spec, self._labels_of(name, spec)), deadline
            )
            with self.api.archive(container, path, deadline.left_s()) as (told, chunks):
                copying.check_told(deadline.what, told, max_bytes)
                copying.write_single(deadline, chunks, target, max_bytes)
        finally:
            self._discard(name)

    def _create(self, name: str, body: dict[str, Any], deadline: Deadline) -> str:
        """Creates a container; a request once sent is waited for past the deadline.

        The engine goes on with a request whose client has hung up: to be sure that nothing
        is left, its answer must be known.
        """
        return self.api.create(name, body, max(deadline.left_s(), _CLEANUP_S))

    def _discard(self, name: str) -> None:
        """Removes a container that may or may not be there."""
        with contextlib.suppress(MissingError):
            self.api.remove(name, _CLEANUP_S)

    async def _undo(self, name: str, job: Future[Started]) -> None:
        """Removes what an abandoned start made, once it has come to its end."""
        coming = Deadline(f"wait for the start of container {name}", _CLEANUP_S)
        with contextlib.suppress(ContainerError, asyncio.CancelledError):
            started = await self.calls.wait(job, coming)
            self._events.forget(started.id)
        # The job may hang for ever in an answer that trickles: what it has made goes all the same.
        deadline = Deadline(f"remove container {name}", _CLEANUP_S)
        await self.calls.run(deadline, lambda _: self._discard(name))

    async def _owned(self, work: Coroutine[Any, Any, None]) -> None:
        """Runs cleaning work to its end even if the caller is cancelled meanwhile."""
        task = asyncio.ensure_future(work)
        self._cleaning.add(task)
        task.add_done_callback(self._cleaned)
        await asyncio.shield(task)

    def _cleaned(self, task: asyncio.Task[None]) -> None:
        """Takes note of cleaning work that has ended; its caller may be gone."""
        self._cleaning.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.warning("left to the reaper: %s", error)

    def _remove_all(self, deadline: Deadline) -> None:
        """Removes this engine's containers, and its network if nobody uses it; in a thread."""
        label = f"{ownership.ENGINE}={self._labels[ownership.ENGINE]}"
        for item in self.api.listing("containers", [label], deadline.left_s()):
            # An image that somebody made of our container hands its labels on.
            if ownership.proves(ownership.listed_name(item), item["Labels"] or {}):
                self._discard(item["Id"])
        if self._network.used:
            self._network.close(deadline)
