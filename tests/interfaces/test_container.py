"""What every container engine must do, over Docker."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest
from aiohttp import web

from tests.base_image import base_image
from tests.workers.container.conftest import bench as bench
from tests.workers.container.engines import Bench, built_image, docker, eventually, spec
from workers.container.interface import (
    Container,
    ContainerError,
    ContainerLostError,
    ContainerTimeoutError,
    Engine,
    ExitState,
    ImageBuildError,
    Mount,
)

pytestmark = pytest.mark.docker

Opened = Callable[[], AbstractAsyncContextManager[Engine]]
Context = Callable[[str], tuple[Path, str]]
TIMEOUT_S = 60.0
ODD = (
    f"FROM {base_image()}\n"
    + """\
RUN useradd --uid 4711 somebody && mkdir /data /work && echo kept > /data/file \
 && ln -s /etc/passwd /link && mkfifo /pipe && mkdir /folder && echo in > /folder/file \
 && head -c 300000 /dev/zero > /large && printf 'plain\\n' > /plain && chmod 4700 /plain \
 && ln -s /folder /through
VOLUME /data
WORKDIR /work
USER somebody
ENTRYPOINT ["false"]
CMD ["ignored"]
HEALTHCHECK --interval=1s CMD touch /work/checked
"""
)


@pytest.fixture(params=["docker"])
def opened(request: pytest.FixtureRequest, bench: Bench) -> Opened:
    """One engine after the other: a call opens it, and closes it in the end."""
    return bench.engine


@pytest.fixture(scope="module")
def odd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """An image that sets everything that a task image may set."""
    with built_image(tmp_path_factory.mktemp("odd"), ODD) as tag:
        yield tag


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    """A folder that any user in a container may write to."""
    path = tmp_path / "shared"
    path.mkdir()
    path.chmod(0o777)
    return path


@pytest.fixture
def image_context(tmp_path: Path) -> Iterator[Context]:
    """Makes a build context and a tag, whose image is removed after the test."""
    tags = []

    def make(dockerfile: str) -> tuple[Path, str]:
        context = tmp_path / "context"
        context.mkdir()
        (context / "Dockerfile").write_text(dockerfile)
        tags.append(f"apiary-test:{secrets.token_hex(6)}")
        return context, tags[-1]

    yield make
    for tag in tags:
        if docker("image", "ls", "--quiet", tag):
            docker("image", "rm", "--force", tag)


@contextlib.asynccontextmanager
async def running(engine: Engine, *command: str, **options: object) -> AsyncIterator[Container]:
    """A container of the base image, removed in the end."""
    container = await engine.start(spec(*command, **options), TIMEOUT_S)
    try:
        yield container
    finally:
        await container.remove(TIMEOUT_S)


def test_a_container_ends_with_its_exit_code(opened: Opened) -> None:
    async def scenario() -> None:
        async with opened() as engine, running(engine, "sh", "-c", "sleep 0.5; exit 7") as it:
            assert await it.ended(0.05) is None
            assert await it.ended(TIMEOUT_S) == ExitState(7, oom_killed=False)
            assert await it.ended(0) == ExitState(7, oom_killed=False)
            assert await it.kill(TIMEOUT_S) == ExitState(7, oom_killed=False)

    asyncio.run(scenario())


def test_containers_that_end_at_once_are_not_missed(opened: Opened) -> None:
    async def one(engine: Engine) -> ExitState | None:
        async with running(engine, "true") as it:
            return await it.ended(TIMEOUT_S)

    async def scenario() -> None:
        async with opened() as engine:
            ends = await asyncio.gather(*(one(engine) for _ in range(8)))
        assert ends == [ExitState(0, oom_killed=False)] * 8

    asyncio.run(scenario())


def test_killing_leaves_no_process(opened: Opened) -> None:
    mark = f"7{secrets.randbelow(10**8):08d}"
    script = f"trap '' TERM INT HUP; sleep {mark} & setsid sleep {mark} & sleep {mark}"

    async def scenario() -> None:
        async with opened() as engine, running(engine, "sh", "-c", script) as it:
            await asyncio.to_thread(eventually, lambda: len(host_processes(mark)) == 3)
            assert await it.kill(TIMEOUT_S) == ExitState(137, oom_killed=False, signalled=True)
            assert host_processes(mark) == []
            with pytest.raises(ContainerLostError):
                it.listen(3600)

    asyncio.run(scenario())


def host_processes(mark: str) -> list[str]:
    """Processes on this kernel whose argument list is ``sleep <mark>``."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if path.read_bytes() == f"sleep\0{mark}\0".encode():
                found.append(path.parent.name)
    return found


def test_removal_is_by_force_and_may_be_repeated(opened: Opened) -> None:
    async def scenario() -> None:
        async with opened() as engine:
            container = await engine.start(spec("sleep", "1000"), TIMEOUT_S)
            await asyncio.gather(*(container.remove(TIMEOUT_S) for _ in range(3)))
            await container.remove(TIMEOUT_S)

    asyncio.run(scenario())


def test_a_container_that_somebody_else_removes_is_lost(opened: Opened) -> None:
    async def scenario() -> None:
        async with opened() as engine, running(engine, "sleep", "1000") as it:
            docker("container", "rm", "--force", it.id)
            # Its death comes before its end, so there is an exit code; after that it is gone.
            killed = ExitState(137, oom_killed=False, signalled=True)
            assert await it.ended(TIMEOUT_S) == killed
            assert await it.kill(TIMEOUT_S) == killed

    asyncio.run(scenario())


def test_oom_kills_of_a_child_are_counted_while_it_runs(opened: Opened, shared: Path) -> None:
    script = "python3 -c 'bytearray(400 << 20)'; echo $? > /out/done; sleep 1000"

    async def scenario() -> None:
        async with (
            opened() as engine,
            running(engine, "sh", "-c", script, memory_mb=64, mounts=[out(shared)]) as it,
        ):
            await asyncio.to_thread(eventually, (shared / "done").exists)
            assert it.oom_events() == 1
            state = await it.kill(TIMEOUT_S)
            assert state == ExitState(137, oom_killed=True, signalled=True)
            assert it.oom_events() == 1

    asyncio.run(scenario())


def test_an_oom_kill_of_the_first_process_is_told(opened: Opened) -> None:
    async def scenario() -> None:
        command = ("python3", "-c", "bytearray(400 << 20)")
        async with opened() as engine, running(engine, *command, memory_mb=64) as it:
            assert await it.ended(TIMEOUT_S) == ExitState(137, oom_killed=True)

    asyncio.run(scenario())


CLIENT = """\
import os, pathlib, time, urllib.request
print(sorted(os.listdir("/sys/class/net")))
ends = time.monotonic() + 30
while True:
    try:
        print(urllib.request.urlopen("http://localhost:3600/hello", timeout=10).read().decode())
        break
    except OSError:
        assert time.monotonic() < ends
        time.sleep(0.01)
"""


@pytest.mark.parametrize("own_hosts", [False, True])
def test_a_sealed_container_reaches_what_is_served_on_its_loopback(
    own_hosts: bool, opened: Opened, shared: Path, tmp_path: Path
) -> None:
    hosts = tmp_path / "hosts" if own_hosts else None

    async def hello(_: web.Request) -> web.Response:
        return web.Response(text="from the host")

    async def scenario() -> None:
        app = web.Application()
        app.router.add_get("/hello", hello)
        runner = web.AppRunner(app)
        await runner.setup()
        (shared / "client.py").write_text(CLIENT)
        command = ("sh", "-c", "python3 /out/client.py > /out/said")
        options = {"mounts": [out(shared)], "hosts_file": hosts}
        async with opened() as engine, running(engine, *command, **options) as it:
            await web.SockSite(runner, it.listen(3600)).start()
            assert await it.ended(TIMEOUT_S) == ExitState(0, oom_killed=False)
        await runner.cleanup()
        assert (shared / "said").read_text() == "['lo']\nfrom the host\n"

    asyncio.run(scenario())


@pytest.mark.parametrize("harden", [False, True])
def test_a_hosts_file_is_its_containers_own(
    harden: bool, opened: Opened, shared: Path, tmp_path: Path
) -> None:
    script = """
    readlink /proc/self/ns/net
    getent hosts localhost relay.test | cut -d' ' -f1 | sort -u
    echo 127.0.0.1 mine >> /etc/hosts; getent hosts mine | cut -d' ' -f1
    """

    async def scenario() -> None:
        async with opened() as engine:
            said = []
            for name in ("one", "other"):
                asked = spec(
                    *("sh", "-c", script),
                    harden=harden,
                    hosts_file=tmp_path / name,
                    loopback_names=("relay.test",),
                )
                state, output = await engine.run_once(asked, TIMEOUT_S)
                assert state == ExitState(0, oom_killed=False)
                said.append(output.split())
            assert [words[1:] for words in said] == [["127.0.0.1", "127.0.0.1"]] * 2
            assert os.readlink("/proc/self/ns/net") not in {words[0] for words in said}

    asyncio.run(scenario())
    assert (tmp_path / "one").read_text().count("mine") == 1


def test_containers_have_loopbacks_of_their_own(opened: Opened) -> None:
    async def scenario() -> None:
        async with (
            opened() as engine,
            running(engine, "sleep", "1000") as one,
            running(engine, "sleep", "1000") as other,
        ):
            with one.listen(3600) as first, other.listen(3600) as second:
                assert first.getsockname() == second.getsockname() == ("127.0.0.1", 3600)
                with pytest.raises(ContainerError, match="port 3600"):
                    one.listen(3600)

    asyncio.run(scenario())


def test_a_failed_start_leaves_nothing(opened: Opened) -> None:
    async def scenario() -> None:
        async with opened() as engine:
            with pytest.raises(ContainerError, match="/no/such/program"):
                await engine.start(spec("/no/such/program"), TIMEOUT_S)
            with pytest.raises(ContainerError, match="sha256:0123"):
                await engine.start(spec("true", image="sha256:0123"), TIMEOUT_S)
            with pytest.raises(ContainerError, match="/no/such/folder"):
                mounts = [Mount(Path("/no/such/folder"), "/x")]
                await engine.start(spec("true", mounts=mounts), TIMEOUT_S)

    asyncio.run(scenario())


def test_a_start_that_is_cancelled_or_late_leaves_nothing(opened: Opened) -> None:
    async def scenario() -> None:
        async with opened() as engine:
            with pytest.raises(ContainerError, match=r"0\.01 s|in time"):
                await engine.start(spec("sleep", "1000"), 0.01)
            for delay_s in (0.0, 0.01, 0.05, 0.1, 0.2):
                start = asyncio.create_task(engine.start(spec("sleep", "1000"), TIMEOUT_S))
                await asyncio.wait([start], timeout=delay_s)
                if start.cancel():
                    with pytest.raises(asyncio.CancelledError):
                        await start
                else:
                    await start.result().remove(TIMEOUT_S)

    asyncio.run(scenario())


def test_mounts_environment_limits_and_privileges_are_as_asked(
    opened: Opened, shared: Path, odd: str
) -> None:
    script = """
    pwd > /out/cwd; cd /; echo $WORD > /out/word
    (echo no > /in/file) 2>/dev/null; echo $? > /out/refused
    grep -E 'CapEff|CapBnd|NoNewPrivs' /proc/self/status > /out/status
    tr '\\0' ' ' < /proc/1/cmdline > /out/command; id -u > /out/uid
    """

    async def scenario() -> None:
        mounts = [out(shared), Mount(shared, "/in")]
        async with opened() as engine:
            state, output = await engine.run_once(
                spec("sh", "-c", script, image=odd, environment={"WORD": "a b"}, mounts=mounts),
                TIMEOUT_S,
            )
        assert (state, output) == (ExitState(0, oom_killed=False), "")

    asyncio.run(scenario())
    said = {file.name: file.read_text().strip() for file in shared.iterdir()}
    assert said["word"] == "a b"
    assert said["refused"] != "0"
    assert said["cwd"] == "/work"
    assert said["uid"] == "4711"
    assert said["command"].startswith("sh -c")
    status = dict(line.split(":\t") for line in said["status"].splitlines())
    assert status["NoNewPrivs"] == "1"
    assert int(status["CapEff"], 16) == int(status["CapBnd"], 16) == 0


def test_harbor_tasks_keep_the_default_capabilities(opened: Opened) -> None:
    script = "grep -E 'CapEff|NoNewPrivs' /proc/self/status; touch /x; chown 1:1 /x"

    async def scenario() -> None:
        async with opened() as engine:
            state, output = await engine.run_once(spec("sh", "-c", script, harden=False), TIMEOUT_S)
        assert state.exit_code == 0
        assert "NoNewPrivs:\t0" in output
        assert "CapEff:\t0000000000000000" not in output

    asyncio.run(scenario())


def test_a_fork_bomb_meets_its_limit(opened: Opened) -> None:
    script = (
        "import subprocess as s\n"
        "try:\n"
        "    for _ in range(100): s.Popen(['sleep', '1000'])\n"
        "except BlockingIOError: print('limited')"
    )

    async def scenario() -> None:
        async with opened() as engine:
            _, output = await engine.run_once(spec("python3", "-c", script, pids=20), TIMEOUT_S)
        assert output == "limited\n"

    asyncio.run(scenario())


def test_run_once_gives_both_ends_of_a_long_output(opened: Opened) -> None:
    script = "for i in range(200_000): print(i)"

    async def scenario() -> None:
        async with opened() as engine:
            state, output = await engine.run_once(spec("python3", "-c", script), TIMEOUT_S)
        assert state.exit_code == 0
        head, left_out, tail = output.partition(" bytes left out]\n")
        assert left_out
        assert tail.endswith("199998\n199999\n")
        assert len(head.encode()) <= 4096 + 32
        assert len(tail.encode()) <= 8192

    asyncio.run(scenario())


def test_run_once_kills_what_does_not_end(opened: Opened) -> None:
    async def scenario() -> None:
        async with opened() as engine:
            with pytest.raises(ContainerTimeoutError, match="2 s"):
                await engine.run_once(spec("sleep", "1000"), 2.0)
            run = asyncio.create_task(engine.run_once(spec("sleep", "1000"), TIMEOUT_S))
            await asyncio.sleep(1.0)  # it runs by now, or is about to: both must be undone
            run.cancel()
            with pytest.raises(asyncio.CancelledError):
                await run

    asyncio.run(scenario())


def test_anonymous_volumes_go_with_their_container(opened: Opened, odd: str) -> None:
    before = docker("volume", "ls", "--quiet", "--filter", "dangling=true").split()

    async def scenario() -> None:
        async with opened() as engine:
            state, output = await engine.run_once(spec("cat", "/data/file", image=odd), TIMEOUT_S)
            assert (state.exit_code, output) == (0, "kept\n")

    asyncio.run(scenario())
    after = docker("volume", "ls", "--quiet", "--filter", "dangling=true").split()
    assert set(after) <= set(before)


def test_one_regular_file_is_copied_out(opened: Opened, odd: str, tmp_path: Path) -> None:
    target = tmp_path / "target"

    async def scenario() -> None:
        async with opened() as engine:
            await engine.copy_out(odd, "/plain", target, 6)
            assert target.read_bytes() == b"plain\n"
            assert target.stat().st_mode & 0o7777 == 0o644
            await engine.copy_out(odd, "/through/file", target, 6)
            assert target.read_bytes() == b"in\n"

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("/link", "no regular file"),
        ("/pipe", "no regular file"),
        ("/folder", "no regular file"),
        ("/dev/null", "no regular file|Could not find"),
        ("/large", "300000 bytes, at most 1000"),
        ("/missing", "missing"),
        ("/link/../missing", "missing"),
    ],
)
def test_nothing_else_is_copied_out(
    opened: Opened, odd: str, tmp_path: Path, path: str, reason: str
) -> None:
    async def scenario() -> None:
        async with opened() as engine:
            with pytest.raises(ContainerError, match=reason):
                await engine.copy_out(odd, path, tmp_path / "target", 1000)

    asyncio.run(scenario())
    assert list(tmp_path.iterdir()) == []


def test_an_image_is_built_once_for_all_who_ask(opened: Opened, image_context: Context) -> None:
    context, tag = image_context(
        "ARG BASE_IMAGE\nFROM $BASE_IMAGE\nRUN date +%N > /stamp && sleep 1\n"
    )

    async def scenario() -> None:
        async with opened() as one, opened() as other:
            ids = await asyncio.gather(
                *(build(engine, context, tag) for engine in (one, one, other))
            )
            assert len(set(ids)) == 1
            assert ids[0].startswith("sha256:")
            (context / "Dockerfile").write_text("FROM nothing-of-this-name\n")
            assert await build(other, context, tag) == ids[0]
        assert docker("image", "inspect", "--format", '{{index .Config.Labels "apiary.task"}}', tag)

    asyncio.run(scenario())


def test_a_failed_build_tells_its_last_lines(opened: Opened, image_context: Context) -> None:
    context, tag = image_context(
        "ARG BASE_IMAGE\nFROM $BASE_IMAGE\nRUN echo the reason is here >&2; exit 9\n"
    )

    async def scenario() -> None:
        async with opened() as engine:
            with pytest.raises(ImageBuildError, match=rf"{tag}(.|\n)*the reason is here"):
                await build(engine, context, tag)

    asyncio.run(scenario())


def test_a_build_that_takes_too_long_is_ended(opened: Opened, image_context: Context) -> None:
    mark = f"8{secrets.randbelow(10**8):08d}"
    context, tag = image_context(
        f"ARG BASE_IMAGE\nFROM $BASE_IMAGE\nRUN echo begun && sleep {mark}\n"
    )

    async def scenario() -> None:
        async with opened() as engine:
            with pytest.raises(ImageBuildError, match=r"not done within 4 s(.|\n)*begun"):
                await build(engine, context, tag, 4.0)
            await asyncio.to_thread(eventually, lambda: not host_processes(mark))

    asyncio.run(scenario())


async def build(engine: Engine, context: Path, tag: str, timeout_s: float = TIMEOUT_S) -> str:
    """Asks for an image of tests."""
    return await engine.ensure_image(
        context,
        tag=tag,
        build_args={"BASE_IMAGE": base_image()},
        labels={"apiary.task": "test"},
        timeout_s=timeout_s,
    )


def out(shared: Path) -> Mount:
    """The mount where a container leaves what it has to say."""
    return Mount(shared, "/out", read_only=False)
