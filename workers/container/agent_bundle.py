"""The agent's files for one image: copied, compiled in a container of it, mounted read-only.

A bundle is made once per node, image and content, in a directory named for both, and moved
into place when it is complete. The compiled files are made by the image's own Python with
unchecked hashes, so that the agent imports them as they are. What a container wrote is read
back as regular files only, by names chosen here.
"""

from __future__ import annotations

import asyncio
import hashlib
import importlib.util
import json
import os
import re
import shutil
import stat
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from workers.container.calls import Deadline
from workers.container.interface import ContainerError, ContainerSpec, Engine, Mount
from workers.container.locks import Holds, node_lock
from workers.container.unused import AGENT, bundle_hold

LIB = "/opt/apiary/lib"
"""Goes to ``PYTHONPATH``."""
BIN = "/opt/apiary/bin"
"""Goes to the front of the agent's ``PATH``."""
TIMEOUT_S = 120.0

_OUT = "/opt/apiary/compiled"
_CARRIED = ("nostr", "agent")
_SUFFIXES = frozenset({".py", ".md"})
_COMMAND = "agent/buzz"
_USE_S = 3600.0
"""How old the note of a bundle's last use may be while it is used."""
_POLL_S = 0.05
_MAX_COMPILED = 16 * 1024 * 1024
_CACHE_TAG = re.compile(r"[a-z0-9_-]{1,40}")

_SHELL = 'command -v python3 >/dev/null || exit 41; exec python3 -I -S -c "$0" "$@"'
_COMPILE = f"""\
import sys
if sys.version_info < (3, 9):
    print("Python " + sys.version.split()[0])
    sys.exit(42)
import ctypes, json, os, py_compile
try:
    libc = os.confstr("CS_GNU_LIBC_VERSION")
except (ValueError, OSError):
    libc = None
if not libc:
    sys.exit(43)
library, *sources = sys.argv[1:]
try:
    ctypes.CDLL("{LIB}/" + library)
except OSError as error:
    print(error)
    sys.exit(44)
mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
for place, source in enumerate(sources):
    path = "{LIB}/" + source
    out = "{_OUT}/%d.pyc" % place
    py_compile.compile(path, cfile=out, dfile=path, doraise=True, invalidation_mode=mode)
    os.chmod(out, 0o644)
print(json.dumps({{"cache_tag": sys.implementation.cache_tag}}))
"""
_REFUSALS = {
    41: "it has no python3 on its path; the agent needs CPython 3.9 or later",
    42: "its python3 is older than 3.9",
    43: "its C library is not glibc (2.17 or later), which the agent's Nostr library needs",
    44: "it cannot load the agent's Nostr library",
}


class AgentBundle:
    """The agent's files of this installation, prepared for images of one node."""

    def __init__(self, engine: Engine, directory: Path, labels: Mapping[str, str]) -> None:
        """Keeps bundles under ``directory/agent``; ``labels`` go on the compiling containers."""
        self._engine = engine
        self._directory = directory
        self._labels = dict(labels)
        self._sources: dict[str, Path] | None = None
        self._digest = ""
        self._ready: dict[str, Sequence[Mount]] = {}
        self._used: dict[str, float] = {}
        """When an image's bundle was used last, as far as it was noted; monotonic seconds."""
        self._holds = Holds(directory)
        self.close = self._holds.close
        """Lets go of the bundles: nobody of this process uses them any more."""

    async def mounts(self, image: str) -> Sequence[Mount]:
        """The read-only mounts that bring the agent's files into a container of ``image``.

        Args:
            image: the image's id.

        Raises:
            ContainerError: the image cannot run the agent; the message says why.
        """
        if image not in self._ready or time.monotonic() - self._used[image] > _USE_S:
            if self._sources is None:
                self._sources = await asyncio.to_thread(agent_sources)
                self._digest = await asyncio.to_thread(content_digest, self._sources)
            place = self._directory / AGENT / bundle_key(self._digest, image)
            deadline = Deadline(f"prepare the agent's files for image {image[:19]}", TIMEOUT_S)
            async with node_lock(self._directory, f"agent bundle {place.name}", deadline):
                # It is not held only while a reaper looks at it or removes it.
                while not self._holds.hold(bundle_hold(place.name)):  # noqa: ASYNC110
                    await asyncio.sleep(min(_POLL_S, deadline.left_s()))
                if not await asyncio.to_thread(is_complete, place, self._sources):
                    await self._make(image, place, deadline)
                await asyncio.to_thread(os.utime, place)
            self._used[image] = time.monotonic()
            self._ready[image] = (Mount(place / "lib", LIB), Mount(place / "bin", BIN))
        return self._ready[image]

    async def _make(self, image: str, place: Path, deadline: Deadline) -> None:
        """Copies, compiles, and moves into place."""
        assert self._sources is not None  # set by mounts()
        new = place.with_name(f"{place.name}.new")
        try:
            # What is there was left by a process that died, or thinned out by a cleaner.
            await asyncio.to_thread(_remove, new, place)
            await asyncio.to_thread(copy_sources, self._sources, new)
            modules = sorted(name for name in self._sources if name.endswith(".py"))
            library = next(name for name in self._sources if name.endswith(".so"))
            tag = await self._compile(image, new, library, modules, deadline)
            await asyncio.to_thread(take_compiled, new, modules, tag)
            await asyncio.to_thread(os.rename, new, place)
        finally:
            await asyncio.to_thread(_remove, new)

    async def _compile(
        self, image: str, new: Path, library: str, modules: Sequence[str], deadline: Deadline
    ) -> str:
        """Runs the image's Python over the sources; gives its cache tag."""
        state, output = await self._engine.run_once(
            ContainerSpec(
                image=image,
                command=["/bin/sh", "-c", _SHELL, _COMPILE, library, *modules],
                labels=self._labels,
                mounts=[Mount(new / "lib", LIB), Mount(new / "out", _OUT, read_only=False)],
                memory_mb=512,
            ),
            deadline.left_s(),
        )
        if state.exit_code in _REFUSALS:
            raise ContainerError(
                f"{deadline.what}: {_REFUSALS[state.exit_code]} {output.strip()}".rstrip()
            )
        if state.exit_code != 0:
            raise ContainerError(
                f"{deadline.what}: compiling ended with {state.exit_code}: {output.strip()}"
            )
        return cache_tag(output)


def agent_sources() -> dict[str, Path]:
    """The agent's files: path below the library directory → file of this installation.

    Raises:
        ContainerError: the Nostr library is not installed, or without its shared object.
    """
    workers = Path(__file__).parent.parent
    found = {"workers/__init__.py": workers / "__init__.py"}
    for package in _CARRIED:
        for file in sorted((workers / package).rglob("*")):
            name = file.relative_to(workers).as_posix()
            if file.is_file() and (file.suffix in _SUFFIXES or name == _COMMAND):
                found[f"workers/{name}"] = file
    spec = importlib.util.find_spec("nostr_sdk")
    if spec is None or spec.origin is None:
        raise ContainerError("prepare the agent's files: nostr_sdk is not installed")
    library = Path(spec.origin).parent
    for file in sorted(library.iterdir()):
        if file.suffix in (".py", ".so"):
            found[f"nostr_sdk/{file.name}"] = file
    if not any(name.endswith(".so") for name in found):
        raise ContainerError(f"prepare the agent's files: {library} has no shared object")
    return found


def content_digest(sources: Mapping[str, Path]) -> str:
    """SHA-256 over names and contents, and over how they are compiled."""
    digest = hashlib.sha256((_SHELL + _COMPILE).encode())
    for name in sorted(sources):
        with sources[name].open("rb") as stream:
            inner = hashlib.file_digest(stream, "sha256").hexdigest()
        digest.update(f"{name}\0{inner}\n".encode())
    return digest.hexdigest()


def bundle_key(digest: str, image: str) -> str:
    """The name of a bundle's directory."""
    return hashlib.sha256(f"{digest} {image}".encode()).hexdigest()


def is_complete(place: Path, sources: Mapping[str, Path]) -> bool:
    """Whether a bundle has every file that it was made of, and as many compiled ones.

    It may lie where a cleaner of temporary files takes away what is old.
    """
    compiled = sum(1 for _ in place.rglob("__pycache__/*.pyc"))
    return compiled == sum(name.endswith(".py") for name in sources) and all(
        (place / "lib" / name).is_file() for name in sources
    )


def copy_sources(sources: Mapping[str, Path], new: Path) -> None:
    """Lays ``lib``, ``bin`` and the empty ``out`` below ``new``, readable for every user."""
    for name in ("lib", "bin", "out"):
        _directory(new / name)
    for name, file in sources.items():
        _copy(file, new / "lib" / name, 0o644)
        if name == f"workers/{_COMMAND}":
            _copy(file, new / "bin" / "buzz", 0o755)
    # Whatever user the image runs as writes here; nobody else comes past the parent.
    (new / "out").chmod(0o777)


def take_compiled(new: Path, modules: Sequence[str], tag: str) -> None:
    """Moves the compiled files from ``out`` to where Python looks for them.

    Raises:
        ContainerError: the container left something else in their place.
    """
    for place, name in enumerate(modules):
        data = _read_regular(new / "out" / f"{place}.pyc")
        source = new / "lib" / name
        target = source.parent / "__pycache__" / f"{source.stem}.{tag}.pyc"
        _directory(target.parent)
        target.write_bytes(data)
        target.chmod(0o644)
    _remove(new / "out")


def cache_tag(output: str) -> str:
    """The cache tag in the last line that the compiling container wrote.

    Raises:
        ContainerError: there is none.
    """
    try:
        told = json.loads(output.strip().splitlines()[-1])["cache_tag"]
    except (ValueError, IndexError, KeyError, TypeError, RecursionError) as error:
        raise ContainerError(f"read what compiling the agent's files said: {output!r}") from error
    if not isinstance(told, str) or not _CACHE_TAG.fullmatch(told):
        raise ContainerError(f"read what compiling the agent's files said: {output!r}")
    return told


def _read_regular(path: Path) -> bytes:
    """A regular file's bytes; no link followed, no pipe waited for, no giant read."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise ContainerError(f"read the compiled file {path.name}: {error.strerror}") from error
    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode) or found.st_size > _MAX_COMPILED:
        os.close(descriptor)
        raise ContainerError(f"read the compiled file {path.name}: not a file as expected")
    with os.fdopen(descriptor, "rb") as stream:
        return stream.read(_MAX_COMPILED)


def _copy(source: Path, target: Path, mode: int) -> None:
    """A copy of a file, with its directories."""
    _directory(target.parent)
    shutil.copyfile(source, target)
    target.chmod(mode)


def _remove(*paths: Path) -> None:
    """Removes directories; none there is no error."""
    for path in paths:
        shutil.rmtree(path, ignore_errors=True)


def _directory(path: Path) -> None:
    """A directory that every user may read; its parents below the bundle too."""
    missing = [path, *path.parents]
    for part in reversed([part for part in missing if not part.exists()]):
        part.mkdir(exist_ok=True)
        part.chmod(0o755)
