"""Images of tasks: built once per node by Docker's own command line.

The command line, not the API: it knows BuildKit, ``.dockerignore`` and contexts of any size.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path

from workers.container.api import DockerApi, MissingError
from workers.container.calls import Calls, CallTimeoutError, Deadline
from workers.container.interface import ImageBuildError
from workers.container.locks import node_lock
from workers.container.scratch import scratch_folder

_TAIL_BYTES = 16 * 1024
_TAIL_LINES = 25
_CALL_S = 20.0
_PROBE_S = 30.0
_REAP_S = 10.0
_DIRECTIVE = re.compile(r"#\s*(?P<name>[a-zA-Z][a-zA-Z0-9-]*)\s*=\s*(?P<value>\S.*?)\s*")


class ImageBuilder:
    """Builds, and remembers what it has seen."""

    def __init__(self, api: DockerApi, calls: Calls, directory: Path) -> None:
        self._api = api
        self._calls = calls
        self._directory = directory
        self._known: dict[str, str] = {}
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
            ImageBuildError: it could not be built in time, or another process, which is
                building it, did not end in time.
        """
        if tag in self._known:
            return self._known[tag]
        deadline = Deadline(f"build image {tag}", timeout_s)
        try:
            async with node_lock(self._directory, f"image {tag}", deadline):
                image = await self._id(tag)
                if image is None:
                    options = _options(tag, build_args, labels)
                    image = await self._build(context, options, deadline)
        except CallTimeoutError as error:
            raise ImageBuildError(str(error)) from error
        self._known[tag] = image
        return image

    def forget(self, image: str) -> None:
        """Drops an id that turned out to be gone, so that it is built again."""
        self._known = {tag: known for tag, known in self._known.items() if known != image}

    async def has_buildkit(self) -> bool:
        """Whether the command line can build with BuildKit (version 23 and above: by buildx)."""
        if self._buildkit is None:
            deadline = Deadline("ask docker build for BuildKit", _PROBE_S)
            status, _ = await run_tail(["env", "DOCKER_BUILDKIT=1", *_BUILD, "--help"], deadline)
            self._buildkit = status == 0
        return self._buildkit

    async def _id(self, tag: str) -> str | None:
        """The id behind a tag, None if there is no such image."""
        deadline = Deadline(f"inspect image {tag}", _CALL_S)
        try:
            return await self._calls.run(deadline, lambda d: self._api.image_id(tag, d.left_s()))
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
                status, tail = await run_tail(command, deadline)
            except OSError as error:
                raise ImageBuildError(f"{deadline.what}: run docker build: {error}") from error
            if status != 0:
                raise ImageBuildError(f"{deadline.what}: docker build ended with {status}\n{tail}")
            return id_file.read_text().strip()


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
        raise CallTimeoutError(
            f"{deadline.what}: not done within {deadline.timeout_s:g} s\n{_last_lines(tail)}"
        ) from error
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
