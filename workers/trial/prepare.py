"""Phase 1, prepare: Job -> Prepared. The task's folder and image are on the node.

The folder travels by its digest through the store, so no file system is shared; the image is
built once per node, outside the trial's clock.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from pathlib import Path

from workers.container.agent_bundle import AgentBundle
from workers.container.interface import ContainerError, ImageBuildError
from workers.contract.outcome import Cause
from workers.contract.task import Task
from workers.contract.task_folder import TaskFolderError, archive_key, digest_of, unpack
from workers.contract.task_image import build_arguments, image_tag
from workers.storage.interface import Store, StoreError
from workers.trial.errors import PhaseError, deadline
from workers.trial.handoff import Job, Prepared, Tools


async def prepare(job: Job, tools: Tools, bundle: AgentBundle) -> Prepared:
    """Fetches and builds what is missing; most tries find everything there.

    Raises:
        PhaseError: ``image_build``, ``store_unavailable`` or ``disk_full``.
    """
    limits = job.sweep.limits
    async with deadline("build_s", limits.build_s, Cause.IMAGE_BUILD):
        folder = await asyncio.to_thread(
            fetch_task, tools.store, job.cell.task, tools.workspace / "tasks"
        )
        image = await _image(job, tools, folder, limits.build_s)
        try:
            mounts = await bundle.mounts(image)
        except ContainerError as error:
            raise PhaseError(Cause.IMAGE_BUILD, f"agent files: {error}") from error
    return Prepared(image=image, tests=folder / "tests", agent_mounts=tuple(mounts))


async def _image(job: Job, tools: Tools, folder: Path, timeout_s: float) -> str:
    task = job.cell.task
    dockerfile = (folder / "environment" / "Dockerfile").read_text()
    arguments = build_arguments(dockerfile, job.sweep.sweep, job.sweep.base_image)
    try:
        return await tools.engine.ensure_image(
            folder / "environment",
            tag=image_tag(task, arguments),
            build_args=arguments,
            labels={"apiary.task": task.name, "apiary.sweep": job.sweep.sweep},
            timeout_s=timeout_s,
        )
    except ImageBuildError as error:
        raise PhaseError(Cause.IMAGE_BUILD, str(error)) from error
    except ContainerError as error:
        raise PhaseError(Cause.IMAGE_BUILD, f"image of {task.name}: {error}") from error


def fetch_task(store: Store, task: Task, cache: Path) -> Path:
    """The task's folder on this node, verifier kit beside its tests; blocks.

    It is unpacked beside its final place and renamed, so that a reader sees it whole or not.

    Raises:
        PhaseError: the store did not give it, or gave other bytes than the digest says.
    """
    final = cache / task.digest
    if final.is_dir():
        return final
    cache.mkdir(parents=True, exist_ok=True)
    try:
        data = store.get(archive_key(task.digest))
    except StoreError as error:
        raise PhaseError(Cause.STORE_UNAVAILABLE, f"task {task.name}: {error}") from error
    scratch = Path(tempfile.mkdtemp(prefix="unpack-", dir=cache))
    try:
        unpack(data, scratch)
        if digest_of(scratch / "task", scratch / "kit") != task.digest:
            raise PhaseError(
                Cause.STORE_UNAVAILABLE, f"task {task.name}: the store holds other bytes"
            )
        shutil.copytree(scratch / "kit", scratch / "task" / "tests" / "verifier_kit")
        # Containers run as any user: a folder that only its owner may enter is no use to them.
        scratch.chmod(0o755)
        _publish(scratch / "task", final)
    except TaskFolderError as error:
        raise PhaseError(Cause.STORE_UNAVAILABLE, f"task {task.name}: {error}") from error
    except OSError as error:
        raise PhaseError(Cause.DISK_FULL, f"task {task.name}: {error.strerror}") from error
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return final


def _publish(folder: Path, final: Path) -> None:
    try:
        folder.rename(final)
    except OSError:
        # Another trial of this node was first; both unpacked the same bytes.
        if not os.path.isdir(final):
            raise
