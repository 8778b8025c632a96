"""Phase 1, prepare: Job -> Prepared. The task's folder and image are on the node.

The folder travels by its digest through the store, so no file system is shared; the image is
built once per node, outside the trial's clock.
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

from workers.container.agent_bundle import AgentBundle
from workers.container.calls import Deadline
from workers.container.interface import ContainerError, DiskFullError, ImageBuildError, Mount
from workers.container.locks import node_lock
from workers.container.unused import BASE
from workers.contract.buzz import BuzzStack
from workers.contract.outcome import Cause
from workers.contract.task import Task
from workers.contract.task_folder import TaskFolderError, archive_key, digest_of, unpack
from workers.contract.task_image import BASE_ARGUMENT, build_arguments, image_tag
from workers.storage.interface import Store, StoreError
from workers.trial.buzz_environment import BIN
from workers.trial.buzz_stack import fetch_programs
from workers.trial.errors import PhaseError, cause_of_store, deadline, is_disk_full
from workers.trial.files import publish
from workers.trial.handoff import Job, Prepared, Tools


async def prepare(job: Job, tools: Tools, bundle: AgentBundle | None) -> Prepared:
    """Fetches and builds what is missing; most tries find everything there.

    Args:
        job: what the trial is asked to do.
        tools: the node's.
        bundle: the files of a model's agent; None: none is to run.

    Raises:
        PhaseError: ``image_build``, ``agent_launch`` where the image cannot run the agent,
            ``store_unavailable``, ``clock_skew`` or ``disk_full``.
    """
    async with deadline("build_s", job.build_s, Cause.IMAGE_BUILD):
        folder = await asyncio.to_thread(
            fetch_task, tools.store, job.cell.task, tools.workspace / "tasks"
        )
        image, pulled = await _image(job, tools, folder, job.build_s)
        try:
            mounts = await _agent_mounts(job, tools, bundle, image) if bundle else ()
        except ContainerError as error:
            raise PhaseError(Cause.AGENT_LAUNCH, f"agent files: {error}") from error
    return Prepared(image=image, tests=folder / "tests", agent_mounts=tuple(mounts), pulled=pulled)


async def _agent_mounts(job: Job, tools: Tools, bundle: AgentBundle, image: str) -> Sequence[Mount]:
    """The agent's files: of the reference agent by image, of the production stack by sweep."""
    if job.sweep.buzz is None:
        return await bundle.mounts(image)
    programs = await _programs(tools, job.sweep.buzz, job.build_s)
    return (Mount(programs, BIN),)


async def _programs(tools: Tools, stack: BuzzStack, timeout_s: float) -> Path:
    """Fetched by one trial for all of the node: together they are large."""
    what = f"fetch the agent's programs {stack.digest[:12]}"
    async with node_lock(tools.workspace, what, Deadline(what, timeout_s)):
        return await asyncio.to_thread(
            fetch_programs, tools.store, stack, tools.workspace / "programs"
        )


async def _image(job: Job, tools: Tools, folder: Path, timeout_s: float) -> tuple[str, str | None]:
    """The image's id and, of one that was pulled, its digest."""
    task = job.cell.task
    try:
        if reference := task.config.environment.docker_image:
            return await tools.engine.ensure_pulled(reference, timeout_s)
        return await _built(job, tools, folder, timeout_s), None
    except DiskFullError as error:
        raise PhaseError(Cause.DISK_FULL, str(error)) from error
    except ImageBuildError as error:
        raise PhaseError(Cause.IMAGE_BUILD, str(error)) from error
    except ContainerError as error:
        raise PhaseError(Cause.IMAGE_BUILD, f"image of {task.name}: {error}") from error


async def _built(job: Job, tools: Tools, folder: Path, timeout_s: float) -> str:
    task = job.cell.task
    dockerfile = (folder / "environment" / "Dockerfile").read_text()
    arguments = build_arguments(dockerfile, job.sweep.sweep, job.sweep.base_image)
    return await tools.engine.ensure_image(
        folder / "environment",
        tag=image_tag(task, arguments),
        build_args=arguments,
        labels={
            "apiary.task": task.name,
            "apiary.sweep": job.sweep.sweep,
            BASE: arguments.get(BASE_ARGUMENT, ""),
        },
        timeout_s=timeout_s,
    )


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
        raise PhaseError(cause_of_store(error), f"task {task.name}: {error}") from error
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
        publish(scratch / "task", final)
    except TaskFolderError as error:
        raise PhaseError(Cause.STORE_UNAVAILABLE, f"task {task.name}: {error}") from error
    except OSError as error:
        # A copy of a folder gathers its faults into one without an errno.
        if not isinstance(error, shutil.Error) and not is_disk_full(error):
            raise
        raise PhaseError(Cause.DISK_FULL, f"task {task.name}: {error.strerror}") from error
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return final
