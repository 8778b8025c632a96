"""Phase 7 where the container's state is graded: the task's tests run in the frozen container.

Nothing of it was there before: the tests' folder was empty and read-only, and whatever the agents
wrote where the reward belongs is taken away before the tests start. What tests call of the
container's own programs is part of the state that they grade: where no test can be started any
more, though one can in a fresh container of the image, the state is worth nothing.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import time
from functools import partial
from pathlib import Path
from typing import Any

from workers.container.calls import CallTimeoutError
from workers.container.disk import MIB, used_bytes
from workers.container.interface import (
    Container,
    ContainerError,
    ContainerLostError,
    ContainerSpec,
    ContainerTimeoutError,
    Engine,
)
from workers.contract.outcome import Cause
from workers.trial.errors import PhaseError
from workers.trial.files import UnsafeFileError, read_guarded, read_log
from workers.trial.handoff import OWN_VARIABLES, Unverified, Verified
from workers.trial.script import command_of, into_file
from workers.trial.verify import (
    REWARD_BYTES,
    Verification,
    keep_details,
    read_reward,
    read_reward_text,
)

OUTPUT_NAME = "test-stdout.txt"
SCRIPT = "test.sh"
OUTPUT_BYTES = 64 * 1024
PROBE = ("bash", "-c", "exit 0")
PROBE_S = 60.0
_MAY_BE_THE_STATES = (Cause.VERIFIER_SETUP, Cause.VERIFIER_CRASH)
LOOK_S = 0.5
"""Between two looks at the size of the verifier's folder, which is the node's own disk."""


async def verify_state(
    engine: Engine, container: Container, verification: Verification, storage_bytes: int
) -> Verified | Unverified:
    """Runs the task's tests in the container, once: they may change what they grade.

    Args:
        engine: for a fresh container to compare with.
        container: frozen, and running.
        verification: what is needed beside it.
        storage_bytes: what the tests may write into the verifier's folder.

    Raises:
        PhaseError: ``container_lost``: it ended before its tests did.
    """
    try:
        await asyncio.to_thread(lay_out, verification)
    except OSError as error:
        return Unverified(Cause.VERIFIER_SETUP, f"tests and log folder: {error}")
    ended = await _run(container, verification, storage_bytes)
    _keep_output(verification)
    keep_details(verification)
    word = ended if isinstance(ended, Unverified) else _word(verification, ended)
    if (
        isinstance(word, Unverified)
        and word.cause in _MAY_BE_THE_STATES
        and await _is_unfit(container)
        and await _can_start(engine, verification)
    ):
        return Verified(reward=0.0, dimensions={})
    return word


async def _is_unfit(container: Container) -> bool:
    """Whether no test can be started in the container; False where that is not known."""
    try:
        return await container.execute(PROBE, dict.fromkeys(OWN_VARIABLES), PROBE_S) != 0
    except ContainerLostError as error:
        raise PhaseError(Cause.CONTAINER_LOST, str(error)) from error
    except (CallTimeoutError, ContainerTimeoutError):
        return False
    except ContainerError:  # the engine refuses: there is no such program
        return True


async def _can_start(engine: Engine, verification: Verification) -> bool:
    """Whether a test can be started in a fresh container of the image."""
    expires = {"apiary.expires": str(int(time.time() + 2 * PROBE_S))}
    labels = {**verification.labels, **expires}
    probe = ContainerSpec(image=verification.image, command=PROBE, labels=labels)
    try:
        state, _ = await engine.run_once(probe, PROBE_S)
    except ContainerError:
        return False
    return state.exit_code == 0


def lay_out(verification: Verification) -> None:
    """Empties the verifier's folder and puts the tests where they are mounted; blocks.

    Things are moved away, not removed: something that lives on may be writing into them. The
    folder itself is a mount and must stay the same one.

    Raises:
        OSError: the disk refused, or a thing there is not ours to move.
    """
    folder = verification.folder
    aside = folder.root / "before-verification"
    aside.mkdir(mode=0o700)
    for place, name in enumerate(os.listdir(folder.verifier_logs)):
        os.rename(folder.verifier_logs / name, aside / str(place))
    folder.verifier_logs.chmod(0o777)
    shutil.copytree(verification.tests, folder.tests, dirs_exist_ok=True)


async def _run(
    container: Container, verification: Verification, storage_bytes: int
) -> int | Unverified:
    """The tests' exit code, or why they did not come to an end."""
    limit = verification.task.config.verifier
    variables = {**dict.fromkeys(OWN_VARIABLES), **limit.env}
    command = into_file(
        command_of(verification.tests / SCRIPT, f"/tests/{SCRIPT}"),
        f"/logs/verifier/{OUTPUT_NAME}",
    )
    run = asyncio.ensure_future(
        container.execute(command, variables, limit.timeout_sec, limit.user or "")
    )
    full = asyncio.ensure_future(_filled(verification.folder.verifier_logs, storage_bytes))
    both: set[asyncio.Future[Any]] = {run, full}
    try:
        await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        if not run.done():
            return Unverified(
                Cause.VERIFIER_CRASH,
                f"the tests wrote more than storage_mb {storage_bytes // MIB} to /logs/verifier",
            )
        return run.result()
    except ContainerTimeoutError as error:
        return Unverified(Cause.VERIFIER_TIMEOUT, str(error))
    except ContainerLostError as error:
        raise PhaseError(Cause.CONTAINER_LOST, str(error)) from error
    except ContainerError as error:
        return Unverified(Cause.VERIFIER_SETUP, str(error))
    finally:
        for each in both:
            each.cancel()
        await asyncio.gather(*both, return_exceptions=True)


async def _filled(folder: Path, bound: int) -> None:
    """Returns once a folder holds more than it may."""
    used = 0
    while used <= bound:
        await asyncio.sleep(LOOK_S)
        used = await asyncio.to_thread(used_bytes, folder, bound)


def _keep_output(verification: Verification) -> None:
    kept = read_log(verification.folder.verifier_logs / OUTPUT_NAME, OUTPUT_BYTES)
    verification.folder.write_log("logs/verifier/output.log", kept.data, verification.secrets)


def _word(verification: Verification, exit_code: int) -> Verified | Unverified:
    """What the tests left: ``reward.json``, else ``reward.txt``, as Harbor reads them."""
    folder = verification.folder
    readers = (
        ("reward.json", partial(read_reward, several=True)),
        ("reward.txt", read_reward_text),
    )
    for name, read in readers:
        try:
            data = read_guarded(folder.verifier_logs / name, REWARD_BYTES)
        except FileNotFoundError:
            continue
        except UnsafeFileError as error:
            return Unverified(Cause.REWARD_MALFORMED, str(error))
        folder.write(name, data, verification.secrets)
        return read(data)
    if exit_code != 0:
        return Unverified(
            Cause.VERIFIER_CRASH,
            f"the tests ended with exit code {exit_code} and left no reward",
        )
    return Unverified(Cause.REWARD_MISSING, "the tests left no reward.json and no reward.txt")
