"""What newer engines leave out of their answers; no Docker."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, cast

from workers.container.api import DockerApi
from workers.container.calls import Calls, Deadline
from workers.container.image import ImageBuilder
from workers.container.unused import remove_image


class Api:
    """An engine whose only image has no labels, as interface version 1.52 tells of it."""

    def __init__(self) -> None:
        self.removed: list[str] = []

    def image(self, reference: str, timeout_s: float) -> Any:
        return {"Id": "sha256:7", "Config": {}, "RepoTags": [reference], "RepoDigests": []}

    def remove_image(self, reference: str, prune: bool, timeout_s: float) -> None:
        self.removed.append(reference)


def test_an_image_without_labels_is_somebody_elses_and_taken_as_it_is(tmp_path: Path) -> None:
    api = Api()
    engine = cast("DockerApi", api)

    async def test() -> str:
        calls = Calls(1)
        images = ImageBuilder(engine, calls, tmp_path)
        try:
            return await images.ensure(
                tmp_path, tag="task:1", build_args={}, labels={}, timeout_s=20.0
            )
        finally:
            images.close()
            await calls.close()

    assert asyncio.run(test()) == "sha256:7"
    assert remove_image(engine, tmp_path, "task:1", Deadline("remove it", 20.0))
    assert api.removed == ["task:1"]
