from __future__ import annotations

import asyncio
import threading

import pytest

from tests.base_image import base_image
from tests.workers.container.engines import Bench, docker, eventually, spec
from workers.container import ownership
from workers.container.docker import DockerEngine
from workers.container.interface import ContainerError

TIMEOUT_S = 60.0


def test_an_engine_that_is_not_there_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere/docker.sock")
    with pytest.raises(ContainerError, match="connect to the Docker engine at /nowhere"):
        asyncio.run(DockerEngine.open("here"))


@pytest.mark.docker
def test_containers_carry_the_labels_of_caller_and_engine(bench: Bench) -> None:
    async def scenario() -> None:
        async with bench.engine() as engine:
            container = await engine.start(spec("sleep", "1000"), TIMEOUT_S)
            labels = engine.api.inspect(container.id, 20)["Config"]["Labels"]
            assert labels[ownership.SWEEP] == "test"
            assert labels[ownership.NODE] == bench.node
            assert labels[ownership.OWNER] == ownership.this_process()
            await container.remove(TIMEOUT_S)

    asyncio.run(scenario())


@pytest.mark.docker
def test_closing_takes_along_what_is_left(bench: Bench) -> None:
    async def scenario() -> str:
        engine = await bench.open()
        container = await engine.start(spec("sleep", "1000"), TIMEOUT_S)
        await engine.close()
        return container.id

    container = asyncio.run(scenario())
    assert container not in docker("ps", "--all", "--quiet", "--no-trunc")


@pytest.mark.docker
def test_closing_lets_be_what_somebody_made_of_our_container(bench: Bench) -> None:
    image = f"stranger:{bench.node}"

    async def scenario() -> str:
        engine = await bench.open()
        container = await engine.start(spec("sleep", "1000"), TIMEOUT_S)
        docker("commit", container.id, image)
        other = docker("run", "--detach", "--network=none", image)
        await engine.close()
        return other

    other = asyncio.run(scenario())
    try:
        assert docker("inspect", other, "--format", "{{.State.Running}}") == "true"
    finally:
        docker("rm", "--force", other)
        docker("image", "rm", image)


@pytest.mark.docker
def test_an_image_that_went_away_is_built_again(bench: Bench) -> None:
    context = bench.directory / "context"
    context.mkdir()
    (context / "Dockerfile").write_text(f"FROM {base_image()}\nRUN true\n")
    tag = f"apiary-test:{bench.node}"

    async def build(engine: DockerEngine) -> str:
        return await engine.ensure_image(
            context, tag=tag, build_args={}, labels={}, timeout_s=TIMEOUT_S
        )

    async def scenario() -> None:
        async with bench.engine() as engine:
            image = await build(engine)
            docker("image", "rm", tag)
            with pytest.raises(ContainerError, match="No such image"):
                await engine.start(spec("true", image=image), TIMEOUT_S)
            again = await build(engine)
            assert (await engine.run_once(spec("true", image=again), TIMEOUT_S))[0].exit_code == 0

    try:
        asyncio.run(scenario())
    finally:
        docker("image", "rm", "--force", tag)


@pytest.mark.docker
def test_a_dockerfile_for_buildkit_is_refused_by_name_without_it(bench: Bench) -> None:
    context = bench.directory / "context"
    context.mkdir()
    (context / "Dockerfile").write_text("# syntax=example.org/frontend:1\nFROM x\n")

    async def scenario() -> None:
        async with bench.engine() as engine:
            with pytest.raises(ContainerError, match=r"example\.org/frontend:1"):
                await engine.ensure_image(
                    context, tag="apiary-test:x", build_args={}, labels={}, timeout_s=TIMEOUT_S
                )

    asyncio.run(scenario())


@pytest.mark.docker
def test_the_threads_end_with_the_engine(bench: Bench) -> None:
    async def scenario() -> None:
        async with bench.engine() as engine:
            await engine.run_once(spec("true"), TIMEOUT_S)

    asyncio.run(scenario())
    eventually(lambda: not [t for t in threading.enumerate() if t.name.startswith("docker-")])
