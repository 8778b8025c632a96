"""A task's image on this machine, under the tag that a trial looks for."""

from __future__ import annotations

import asyncio
from pathlib import Path

from workers.container.interface import Engine
from workers.container.unused import BASE
from workers.contract.task import Task
from workers.contract.task_image import build_arguments, image_tag

BUILD_S = 900.0


async def ensure_task_image(
    engine: Engine, folder: Path, task: Task, sweep: str, base: str | None
) -> str:
    """Builds the image unless it is there.

    Args:
        engine: where.
        folder: the task's.
        task: as read from it.
        sweep: the id that an image which asks for one is built with.
        base: the image that builds start from; null: what the Dockerfile names.

    Returns:
        The image's id.

    Raises:
        ImageBuildError: it cannot be built, or pulled where the task names an image.
        ContainerError: the engine could not be asked.
    """
    if reference := task.config.environment.docker_image:
        image, _ = await engine.ensure_pulled(reference, BUILD_S)
        return image
    context = folder / "environment"
    dockerfile = await asyncio.to_thread((context / "Dockerfile").read_text)
    arguments = build_arguments(dockerfile, sweep, base)
    return await engine.ensure_image(
        context,
        tag=image_tag(task, arguments),
        build_args=arguments,
        labels={"apiary.task": task.name, "apiary.sweep": sweep, BASE: base or ""},
        timeout_s=BUILD_S,
    )
