"""Images of tasks: built once per node by Docker's own command line.

The command line, not the API: it knows BuildKit, ``.dockerignore`` and contexts of any size.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Any

from workers.container import ownership
from workers.container.api import DockerApi, MissingError
from workers.container.calls import Calls, CallTimeoutError, Deadline
from workers.container.interface import ContainerError, DiskFullError, ImageBuildError
from workers.container.locks import Holds, node_lock
from workers.container.scratch import scratch_folder
from workers.container.unused import image_hold

_TAIL_BYTES = 16 * 1024
_TAIL_LINES = 25
_CALL_S = 20.0
_PROBE_S = 30.0
_REAP_S = 10.0
_DISK_LOOK_S = 1.0
"""Between two looks at the disk during a build."""
_USE_S = 3600.0
"""How old the note of an image's last use may be while it is used."""
_POLL_S = 0.05
_DIRECTIVE = re.compile(r"#\s*(?P<name>[a-zA-Z][a-zA-Z0-9-]*)\s*=\s*(?P<value>\S.*?)\s*")


class ImageBuilder:
    """Builds, and remembers what it has seen. What it gave is held until ``close``."""

    def __init__(
        self,
        api: DockerApi,
        calls: Calls,
        directory: Path,
        disk_problem: Callable[[], str] = lambda: "",
        built: Callable[[float], None] = lambda seconds: None,
    ) -> None:
        """Has seen nothing yet.

        Args:
            api: the engine.
            calls: of which it is asked.
            directory: for locks.
            disk_problem: says why the disk has no room for a build; empty: it has.
            built: hears how many seconds a build took, whatever came of it.
        """
        self._api = api
        self._calls = calls
        self._directory = directory
        self._disk_problem = disk_problem
        self._built = built
        self._known: dict[str, str] = {}
        self._pulled: dict[str, tuple[str, str | None]] = {}
        self._used: dict[str, float] = {}
        """When the use of a tag was noted last, monotonic seconds."""
        self._holds = Holds(directory)
        self._buildkit: bool | None = None

    async def ensure(
        self,
        context: Path,
        *,
        tag: str,
        build_args: Mapping[str, str],
        labels: Mapping[str, str],
        timeout_s: float,
    ) -> str:
        """The id of image ``tag``; an image that has the tag is taken as it is.

        Raises:
            DiskFullError: the disk has no room for it.
            ImageBuildError: it could not be built in time, or another process, which is
                building it, did not end in time.
        """
        if tag in self._known and time.monotonic() - self._used[tag] < _USE_S:
            return self._known[tag]
        deadline = Deadline(f"build image {tag}", timeout_s)
        try:
            async with node_lock(self._directory, f"image {tag}", deadline):
                # It is not held only while a reaper looks at it or removes it.
                while not self._holds.hold(image_hold(tag)):  # noqa: ASYNC110 (another process)
                    await asyncio.sleep(min(_POLL_S, deadline.left_s()))
                image = await self._taken(tag)
                if image is None:
                    ours = ownership.with_proof(tag, {**labels, ownership.IMAGE: tag})
                    options = _options(tag, build_args, ours)
                    started = time.monotonic()
                    try:
                        image = await self._build(context, options, deadline)
                    finally:
                        self._built(time.monotonic() - started)
        except CallTimeoutError as error:
            raise ImageBuildError(str(error)) from error
        self._known[tag] = image
        self._used[tag] = time.monotonic()
        return image

    async def ensure_pulled(self, reference: str, timeout_s: float) -> tuple[str, str | None]:
        """The id and the digest of the image that a reference names; what is here is taken.

        Raises:
            DiskFullError: the disk has no room for it.
            ImageBuildError: it could not be pulled in time.
        """
        if reference in self._pulled:
            return self._pulled[reference]
        deadline = Deadline(f"pull image {reference}", timeout_s)
        try:
            async with node_lock(self._directory, f"image {reference}", deadline):
                found = await self._named(reference)
                if found is None:
                    # "--": a reference may begin with anything.
                    command = ["docker", "pull", "--quiet", "--", reference]
                    await self._pull(command, deadline)
                    found = await self._named(reference)
        except (DiskFullError, ImageBuildError):
            raise
        except ContainerError as error:  # late, or what the engine does not take for a reference
            raise ImageBuildError(str(error)) from error
        if found is None:
            raise ImageBuildError(f"{deadline.what}: it was pulled, and is gone again")
        self._pulled[reference] = found
        return found

    async def _pull(self, command: Sequence[str], deadline: Deadline) -> None:
        started = time.monotonic()
        try:
            status, tail = await self._while_disk_lasts(run_tail(command, deadline), deadline)
        except OSError as error:
            raise ImageBuildError(f"{deadline.what}: run docker pull: {error}") from error
        finally:
            self._built(time.monotonic() - started)
        if status != 0:
            raise ImageBuildError(f"{deadline.what}: docker pull ended with {status}\n{tail}")

    async def _named(self, reference: str) -> tuple[str, str | None] | None:
        """Id and digest of an image that the engine has; None: it has none of this name."""
        ask = Deadline(f"inspect image {reference}", _CALL_S)
        try:
            told = await self._calls.run(ask, lambda d: self._api.image(reference, d.left_s()))
        except MissingError:
            return None
        return str(told["Id"]), next(iter(told["RepoDigests"] or ()), None)

    def close(self) -> None:
        """Lets go of the images: nobody of this process uses them any more."""
        self._holds.close()

    def forget(self, image: str) -> None:
        """Drops an id that turned out to be gone, so that it is built again."""
        self._known = {tag: known for tag, known in self._known.items() if known != image}
        self._pulled = {name: each for name, each in self._pulled.items() if each[0] != image}

    async def has_buildkit(self) -> bool:
        """Whether the command line can build with BuildKit (version 23 and above: by buildx)."""
        if self._buildkit is None:
            deadline = Deadline("ask docker build for BuildKit", _PROBE_S)
            status, _ = await run_tail(["env", "DOCKER_BUILDKIT=1", *_BUILD, "--help"], deadline)
            self._buildkit = status == 0
        return self._buildkit

    async def _taken(self, tag: str) -> str | None:
        """The id behind a tag, its use noted in the engine; None if there is no such image."""

        def take(left: Deadline) -> str:
            told = self._api.image(tag, left.left_s())
            image = str(told["Id"])
            if ownership.proves(tag, told["Config"].get("Labels") or {}):
                self._api.tag_image(image, tag, left.left_s())
            return image

        try:
            return await self._calls.run(Deadline(f"inspect image {tag}", _CALL_S), take)
        except MissingError:
            return None

    async def _build(self, context: Path, options: Sequence[str], deadline: Deadline) -> str:
        """Runs ``docker build`` and gives the id of what it built."""
        buildkit = await self.has_buildkit()
        where = os.path.abspath(context)  # noqa: ASYNC240 (it only reads the working directory)
        if not buildkit:
            _refuse_frontend(context / "Dockerfile", deadline.what)
        with scratch_folder("build") as scratch:
            id_file = scratch / "id"
            command = [
                *("env", f"DOCKER_BUILDKIT={int(buildkit)}", *_BUILD),
                *(["--progress=plain"] if buildkit else ["--force-rm"]),
                f"--iidfile={id_file}",
                *options,
                where,
            ]
            try:
                status, tail = await self._while_disk_lasts(run_tail(command, deadline), deadline)
            except OSError as error:
                raise ImageBuildError(f"{deadline.what}: run docker build: {error}") from error
            if status != 0:
                raise ImageBuildError(f"{deadline.what}: docker build ended with {status}\n{tail}")
            return id_file.read_text().strip()

    async def _while_disk_lasts(
        self, building: Coroutine[Any, Any, tuple[int, str]], deadline: Deadline
    ) -> tuple[int, str]:
        """A build's end; one that eats up the disk is stopped."""
        build = asyncio.ensure_future(building)
        try:
            while not build.done():
                problem = await asyncio.to_thread(self._disk_problem)
                if problem:
                    raise DiskFullError(f"{deadline.what}: {problem}")
                await asyncio.wait({build}, timeout=_DISK_LOOK_S)
            return build.result()
        finally:
            build.cancel()
            await asyncio.gather(build, return_exceptions=True)


_BUILD = ("docker", "build")


def _options(tag: str, build_args: Mapping[str, str], labels: Mapping[str, str]) -> list[str]:
    """The options that the caller decides, each as one word."""
    return [
        f"--tag={tag}",
        *(f"--build-arg={name}={value}" for name, value in build_args.items()),
        *(f"--label={name}={value}" for name, value in labels.items()),
    ]


def frontend(dockerfile: str) -> str | None:
    """The builder frontend that a Dockerfile asks for by ``# syntax=``, if any.

    Directives stand before everything else: the first line that is none ends them.
    """
    for line in dockerfile.splitlines():
        directive = _DIRECTIVE.fullmatch(line.strip())
        if directive is None:
            return None
        if directive["name"].lower() == "syntax":
            return directive["value"]
    return None


def _refuse_frontend(dockerfile: Path, what: str) -> None:
    """Refuses a Dockerfile for BuildKit: the classic builder would misread it."""
    try:
        wanted = frontend(dockerfile.read_text(errors="replace"))
    except OSError as error:
        raise ImageBuildError(f"{what}: read its Dockerfile: {error}") from error
    if wanted is not None:
        raise ImageBuildError(
            f"{what}: {dockerfile} asks for the frontend {wanted} (# syntax=), which only "
            "BuildKit has; install Docker's buildx plugin on this node, or remove the line"
        )


async def run_tail(command: Sequence[str], deadline: Deadline) -> tuple[int, str]:
    """Runs a program and gives its status and the last lines of its output.

    The program gets a process group of its own, which is killed when the deadline passes or
    the caller is cancelled.

    Raises:
        CallTimeoutError: the deadline passed; the message ends with the last lines.
    """
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        start_new_session=True,
    )
    tail = bytearray()
    try:
        async with asyncio.timeout(deadline.left_s()):
            await _read_tail(process, tail)
            return await process.wait(), _last_lines(tail)
    except TimeoutError as error:
        raise CallTimeoutError(f"{deadline.fired()}\n{_last_lines(tail)}") from error
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            async with asyncio.timeout(_REAP_S):
                await process.wait()


async def _read_tail(process: asyncio.subprocess.Process, tail: bytearray) -> None:
    """Reads all output, keeping its end."""
    assert process.stdout is not None  # it was asked for
    while chunk := await process.stdout.read(_TAIL_BYTES):
        tail += chunk
        del tail[:-_TAIL_BYTES]


def _last_lines(tail: bytearray) -> str:
    """The last lines of an output, for an error."""
    lines = bytes(tail).decode(errors="replace").splitlines()
    return "\n".join(lines[-_TAIL_LINES:])
