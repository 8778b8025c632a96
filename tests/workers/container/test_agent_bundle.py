from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from tests.workers.container.engines import BASE, Bench, built_image, spec
from workers.container import agent_bundle
from workers.container.agent_bundle import BIN, LIB, AgentBundle
from workers.container.interface import ContainerError

SOURCES = {
    "workers/__init__.py": "'map'\n",
    "nostr_sdk/lib.so": "\x7fELF",
    "workers/agent/buzz": "#!",
}


@pytest.fixture
def sources(tmp_path: Path) -> dict[str, Path]:
    """An agent of three files."""
    found = {}
    for name, text in SOURCES.items():
        found[name] = tmp_path / "installed" / name
        found[name].parent.mkdir(parents=True)
        found[name].write_text(text)
        found[name].chmod(0o600)
    return found


def test_the_installed_agent_is_found() -> None:
    found = agent_bundle.agent_sources()
    assert "workers/__init__.py" in found
    assert "nostr_sdk/__init__.py" in found
    assert sum(name.endswith(".so") for name in found) == 1
    assert not any("__pycache__" in name or name.endswith(".pyc") for name in found)
    assert {name.split("/")[1] for name in found if name.count("/") > 1} <= {"nostr", "agent"}


def test_names_and_contents_and_image_make_the_key(sources: dict[str, Path]) -> None:
    first = agent_bundle.content_digest(sources)
    assert agent_bundle.content_digest(dict(reversed(sources.items()))) == first
    renamed = {
        name.replace("map", "x").replace("lib.so", "other.so"): f for name, f in sources.items()
    }
    assert agent_bundle.content_digest(renamed) != first
    sources["workers/__init__.py"].write_text("'another map'\n")
    assert agent_bundle.content_digest(sources) != first
    assert agent_bundle.bundle_key(first, "a") != agent_bundle.bundle_key(first, "b")


def test_copies_are_readable_for_every_user(sources: dict[str, Path], tmp_path: Path) -> None:
    new = tmp_path / "new"
    before = os.umask(0o077)
    try:
        agent_bundle.copy_sources(sources, new)
    finally:
        os.umask(before)
    for path in (new / "lib", new / "bin"):
        for found in (path, *path.rglob("*")):
            mode = found.stat().st_mode & 0o777
            is_program = found.is_dir() or found.parent.name == "bin"
            assert mode == (0o755 if is_program else 0o644), found
    assert (new / "bin" / "buzz").read_text() == "#!"
    assert (new / "lib" / "workers" / "__init__.py").read_text() == "'map'\n"


MODULES = ["workers/__init__.py"]


@pytest.fixture
def copied(sources: dict[str, Path], tmp_path: Path) -> Path:
    new = tmp_path / "new"
    agent_bundle.copy_sources(sources, new)
    return new


def test_compiled_files_go_where_python_looks(copied: Path) -> None:
    (copied / "out" / "0.pyc").write_bytes(b"code")
    (copied / "out" / "surplus").symlink_to("/etc/passwd")
    agent_bundle.take_compiled(copied, MODULES, "cpython-39")
    cache = copied / "lib" / "workers" / "__pycache__"
    assert (cache / "__init__.cpython-39.pyc").read_bytes() == b"code"
    assert cache.stat().st_mode & 0o777 == 0o755
    assert not (copied / "out").exists()


def test_a_bundle_without_one_of_its_files_is_not_complete(
    sources: dict[str, Path], copied: Path
) -> None:
    assert not agent_bundle.is_complete(copied, sources)
    (copied / "out" / "0.pyc").write_bytes(b"code")
    agent_bundle.take_compiled(copied, MODULES, "cpython-39")
    assert agent_bundle.is_complete(copied, sources)
    (copied / "lib" / "nostr_sdk" / "lib.so").unlink()
    assert not agent_bundle.is_complete(copied, sources)


def leave_link(path: Path) -> None:
    path.symlink_to("/etc/passwd")


def leave_pipe(path: Path) -> None:
    os.mkfifo(path)


def leave_giant(path: Path) -> None:
    with path.open("wb") as stream:
        stream.truncate(2**40)


def leave_nothing(_: Path) -> None: ...


@pytest.mark.parametrize("leave", [leave_link, leave_pipe, leave_giant, leave_nothing, Path.mkdir])
def test_anything_but_a_small_regular_file_is_refused(copied: Path, leave: object) -> None:
    leave(copied / "out" / "0.pyc")
    with pytest.raises(ContainerError, match=r"compiled file 0\.pyc"):
        agent_bundle.take_compiled(copied, MODULES, "cpython-39")


def test_the_cache_tag_is_the_last_line() -> None:
    assert agent_bundle.cache_tag('noise\n{"cache_tag": "cpython-313"}\n') == "cpython-313"


@pytest.mark.parametrize(
    "output", ["", "x", "[]", "{}", '{"cache_tag": null}', '{"cache_tag": "../../x"}']
)
def test_any_other_output_is_refused(output: str) -> None:
    with pytest.raises(ContainerError, match="said"):
        agent_bundle.cache_tag(output)


IMPORT = f"""
import sys, pathlib, importlib.util
import nostr_sdk.nostr_sdk as library, workers
for module in (library, workers):
    data = pathlib.Path(module.__spec__.cached).read_bytes()[:8]
    assert data[:4] == importlib.util.MAGIC_NUMBER
    assert int.from_bytes(data[4:], "little") == 1, "unchecked hash"
    assert module.__file__.startswith("{LIB}/")
print(library.Keys.generate().public_key().to_hex())
try:
    pathlib.Path("{LIB}/x").write_text("x")
except OSError as error:
    print(error.strerror)
"""
VERBOSE = (
    "python3 -v -c 'import nostr_sdk, workers' 2>&1"
    f" | grep -c \"code object from '{LIB}/.*/__pycache__/.*pyc'\""
)


@pytest.mark.docker
def test_the_agent_is_compiled_for_the_image_and_imported_read_only(bench: Bench) -> None:
    async def scenario() -> None:
        async with bench.engine() as engine:
            image = engine.api.image_id(BASE, 20)
            bundle = AgentBundle(engine, bench.directory, {"apiary.sweep": "test"})
            mounts, again = await asyncio.gather(bundle.mounts(image), bundle.mounts(image))
            assert mounts == again
            assert [(mount.target, mount.read_only) for mount in mounts] == [
                (LIB, True),
                (BIN, True),
            ]
            library = mounts[0].source / "nostr_sdk" / "__init__.py"
            made = library.stat().st_ino
            assert await AgentBundle(engine, bench.directory, {}).mounts(image) == mounts
            assert library.stat().st_ino == made
            library.unlink()
            assert await AgentBundle(engine, bench.directory, {}).mounts(image) == mounts
            assert library.stat().st_size > 0
            assert len(list((bench.directory / "agent").iterdir())) == 1
            environment = {"PYTHONPATH": LIB}
            options = {"mounts": mounts, "environment": environment}
            state, output = await engine.run_once(
                spec("python3", "-s", "-c", IMPORT, **options), 60
            )
            assert state.exit_code == 0, output
            key, refusal = output.splitlines()
            assert len(key) == 64
            assert refusal == "Read-only file system"
            _, output = await engine.run_once(spec("sh", "-c", VERBOSE, **options), 60)
            assert int(output) >= 3

    asyncio.run(scenario())


UNFIT = """\
FROM {base}
RUN mkdir /fake && printf '#!/bin/sh\\necho $SAY; exit $CODE\\n' > /fake/python3 \
 && chmod 755 /fake/python3
ENV PATH=/fake SAY={say} CODE={code}
"""


@pytest.mark.docker
@pytest.mark.parametrize(
    ("dockerfile", "reason"),
    [
        (f"FROM {BASE}\nENV PATH=/nowhere\n", "no python3 on its path"),
        (
            UNFIT.format(base=BASE, say="Python-3.8.1", code=42),
            "older than 3.9 Python-3.8.1",
        ),
        (UNFIT.format(base=BASE, say="", code=43), "not glibc"),
        (UNFIT.format(base=BASE, say="GLIBC_2.17", code=44), "cannot load .* GLIBC_2.17"),
        (UNFIT.format(base=BASE, say="Oops", code=1), "compiling ended with 1: Oops"),
        (UNFIT.format(base=BASE, say="fine", code=0), "said"),
        (f"FROM {BASE}\nUSER 4711\n", ""),
    ],
)
def test_an_image_that_cannot_run_the_agent_is_refused(
    bench: Bench, tmp_path: Path, dockerfile: str, reason: str
) -> None:
    async def scenario(image: str) -> None:
        async with bench.engine() as engine:
            bundle = AgentBundle(engine, bench.directory, {})
            if not reason:
                assert await bundle.mounts(image)
                return
            with pytest.raises(ContainerError, match=reason):
                await bundle.mounts(image)
            assert list((bench.directory / "agent").iterdir()) == []

    with built_image(tmp_path / "context", dockerfile) as image:
        asyncio.run(scenario(image))
