"""Images that are pulled by their reference, from a registry of the tests' own."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import Iterator

import pytest

from tests.base_image import base_image
from tests.workers.container.engines import Bench
from tests.workers.container.registry import Registry, serving
from workers.container.interface import ImageBuildError

pytestmark = pytest.mark.docker
S = 60.0


@pytest.fixture
def registry() -> Iterator[Registry]:
    with serving(os.urandom(16)) as here:
        yield here
        named = [f"{here.name}:one", f"{here.name}@{here.digest}"]
        subprocess.run(["docker", "rmi", "--force", *named], capture_output=True, check=False)


@pytest.mark.parametrize("by", ["tag", "digest"])
def test_an_image_is_pulled_once_and_its_digest_told(
    bench: Bench, registry: Registry, by: str
) -> None:
    reference = f"{registry.name}:one" if by == "tag" else f"{registry.name}@{registry.digest}"

    async def scenario() -> None:
        async with bench.engine() as engine:
            image, digest = await engine.ensure_pulled(reference, S)
            assert image.startswith("sha256:")
            assert digest == f"{registry.name}@{registry.digest}"
            asked = len(registry.asked)
            assert await engine.ensure_pulled(reference, S) == (image, digest)
            assert len(registry.asked) == asked
        async with bench.engine() as another:
            # What the engine has is taken, whoever pulled it.
            assert await another.ensure_pulled(reference, S) == (image, digest)
            assert len(registry.asked) == asked

    asyncio.run(scenario())


def test_one_that_is_here_is_taken_without_a_registry(bench: Bench) -> None:
    async def scenario() -> None:
        async with bench.engine() as engine:
            image, _ = await engine.ensure_pulled(base_image(), S)
            assert image.startswith("sha256:")

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("reference", "told"),
    [
        ("{name}:two", r"pull image .*:two: docker pull ended with 1\n.*(unknown|not found)"),
        ("127.0.0.1:1/nobody/there:1", r"docker pull ended with 1\n.*(refused|dial tcp)"),
        ("Not A Reference", "Not A Reference: invalid reference format"),
        ("--all-tags", "--all-tags: invalid reference format"),
    ],
)
def test_one_that_cannot_be_had_is_an_error_with_the_engines_words(
    bench: Bench, registry: Registry, reference: str, told: str
) -> None:
    async def scenario() -> None:
        async with bench.engine() as engine:
            with pytest.raises(ImageBuildError, match=told):
                await engine.ensure_pulled(reference.format(name=registry.name), S)

    asyncio.run(scenario())


def test_a_registry_that_does_not_answer_is_not_waited_for(
    bench: Bench, registry: Registry
) -> None:
    registry.slow = True

    async def scenario() -> None:
        async with bench.engine() as engine:
            with pytest.raises(ImageBuildError, match=r"pull image .* not done within 1 s"):
                await engine.ensure_pulled(f"{registry.name}:one", 1.0)

    asyncio.run(scenario())
