"""Phase 7, verify: Prepared and Collected -> Verified or Unverified.

A fresh container of the same image, without network, that sees evidence, stored inputs and
tests, and nothing else. It knows no relay, so an agent cannot reach the verdict, and grading
again is the same function on stored files. Tasks that grade their container's state have
``verify_state`` instead.
"""

from __future__ import annotations

import json
import math
import re
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from workers.container.interface import (
    ContainerError,
    ContainerSpec,
    ContainerTimeoutError,
    Engine,
    ExitState,
    Mount,
)
from workers.contract.outcome import Cause
from workers.contract.task import Task
from workers.trial.files import TrialFolder, UnsafeFileError, read_guarded
from workers.trial.handoff import Unverified, Verified
from workers.trial.secrets import Secrets

VERIFY_COMMAND = ("bash", "/tests/test.sh")
EVIDENCE_NAME = "buzz-evidence.json"
REWARD_BYTES = 64 * 1024
_DECIMAL = re.compile(r"[+-]?([0-9]{1,40}(\.[0-9]{0,40})?|\.[0-9]{1,40})([eE][+-]?[0-9]{1,3})?")
DETAILS_BYTES = 1024 * 1024
INPUT_BYTES = 1024 * 1024
GRACE_S = 60.0
VERIFICATIONS = 2
"""Of one try: what a verifier did not say is asked once more before the try is invalid."""


@dataclass(frozen=True)
class Verification:
    """What a verification needs; all of it is stored, so it can be repeated at any time."""

    task: Task
    image: str
    tests: Path
    folder: TrialFolder
    labels: dict[str, str]
    secrets: Secrets


async def keep_inputs(engine: Engine, verification: Verification) -> str:
    """Copies the image's files that the verifier sees into the try's stored inputs.

    Returns:
        An empty text, or why it could not be done.
    """
    fixture = verification.task.fixture
    for path in fixture.verifier_inputs if fixture else ():
        target = verification.folder.inputs / path.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            await engine.copy_out(verification.image, path, target, INPUT_BYTES)
        except ContainerError as error:
            return f"input {path}: {error}"
        target.chmod(0o644)
    return ""


async def verify(engine: Engine, verification: Verification) -> Verified | Unverified:
    """Runs the task's tests on the evidence; a verifier without a word is run once more."""
    missing = await keep_inputs(engine, verification)
    if missing:
        return Unverified(Cause.VERIFIER_SETUP, missing)
    result: Verified | Unverified = Unverified(Cause.VERIFIER_SETUP, "not run")
    for _ in range(VERIFICATIONS):
        result = await _run(engine, verification)
        if isinstance(result, Verified):
            break
    return result


async def _run(engine: Engine, verification: Verification) -> Verified | Unverified:
    folder = verification.folder
    evidence = (folder.out / "evidence.json").read_bytes()
    (folder.artifacts / EVIDENCE_NAME).write_bytes(evidence)
    # What an earlier run left: its container is gone, and a name may be that of a folder.
    folder.empty_verifier_logs()
    seconds = verification.task.config.verifier.timeout_sec
    try:
        state, output = await engine.run_once(_spec(verification, seconds), seconds)
    except ContainerTimeoutError as error:
        return Unverified(Cause.VERIFIER_TIMEOUT, f"clock verifier.timeout_sec fired: {error}")
    except ContainerError as error:
        return Unverified(Cause.VERIFIER_SETUP, str(error))
    folder.write_log("logs/verifier/output.log", output.encode(), verification.secrets)
    return _word(verification, state, output)


def _spec(verification: Verification, seconds: float) -> ContainerSpec:
    environment = verification.task.config.environment
    folder = verification.folder
    return ContainerSpec(
        image=verification.image,
        command=VERIFY_COMMAND,
        labels={
            **verification.labels,
            "apiary.expires": str(int(time.time() + seconds + GRACE_S)),
        },
        environment={
            "PYTHONDONTWRITEBYTECODE": "1",
            **verification.task.config.verifier.env,
        },
        mounts=(
            Mount(verification.tests, "/tests"),
            Mount(folder.artifacts, "/logs/artifacts"),
            Mount(folder.inputs, "/inputs"),
            Mount(folder.verifier_logs, "/logs/verifier", read_only=False),
        ),
        network="none",
        hosts_file=folder.verifier_hosts,
        cpus=environment.cpus,
        memory_mb=environment.memory_mb,
        storage_mb=environment.storage_mb,
    )


def _word(verification: Verification, state: ExitState, output: str) -> Verified | Unverified:
    folder = verification.folder
    keep_details(verification)
    if state.exit_code != 0:
        return Unverified(
            Cause.VERIFIER_CRASH,
            f"the tests ended with exit code {state.exit_code}: {output.strip()[-300:]}",
        )
    try:
        data = read_guarded(folder.verifier_logs / "reward.json", REWARD_BYTES)
    except FileNotFoundError:
        return Unverified(Cause.REWARD_MISSING, "the tests left no reward.json")
    except UnsafeFileError as error:
        return Unverified(Cause.REWARD_MALFORMED, str(error))
    folder.write("reward.json", data, verification.secrets)
    return read_reward(data)


def keep_details(verification: Verification) -> None:
    """Keeps what explains a reward; it decides nothing, and a verifier may leave none."""
    folder = verification.folder
    with suppress(FileNotFoundError, UnsafeFileError):
        details = read_guarded(folder.verifier_logs / "details.json", DETAILS_BYTES)
        folder.write("details.json", details, verification.secrets)


def read_reward_text(data: bytes) -> Verified | Unverified:
    """Reads a ``reward.txt``: one finite number from 0 to 1 in decimal digits."""
    text = data.decode("utf-8", "replace").strip()
    if not _DECIMAL.fullmatch(text):
        return Unverified(Cause.REWARD_MALFORMED, f"reward.txt is not a number: {text[:80]!r}")
    reward = float(text)
    if not 0.0 <= reward <= 1.0:
        return Unverified(Cause.REWARD_MALFORMED, f"reward {text[:80]} is not between 0 and 1")
    return Verified(reward=reward, dimensions={})


def read_reward(data: bytes, *, several: bool = False) -> Verified | Unverified:
    """Reads a ``reward.json``: one flat object of finite numbers with ``reward`` among them.

    Args:
        data: the file.
        several: there need be none called ``reward``, as in Harbor: the least of them counts,
            so that a pass is a pass in all of them.
    """
    try:
        told = json.loads(data)
    except (ValueError, RecursionError) as error:
        return Unverified(Cause.REWARD_MALFORMED, f"reward.json is not JSON: {error}")
    if not isinstance(told, dict):
        return Unverified(Cause.REWARD_MALFORMED, "reward.json is not an object")
    numbers = {}
    for name, value in told.items():
        if isinstance(value, bool) or not isinstance(value, int | float):
            return Unverified(Cause.REWARD_MALFORMED, f"{name[:80]!r} is not a number")
        if (isinstance(value, int) and abs(value) > 10**15) or not math.isfinite(value):
            return Unverified(Cause.REWARD_MALFORMED, f"{name[:80]!r} is not a finite number")
        numbers[name] = float(value)
    least = min(numbers.values(), default=None) if several else None
    reward = numbers.pop("reward", least)
    if reward is None:
        return Unverified(Cause.REWARD_MALFORMED, "reward.json has no 'reward'")
    if not 0.0 <= reward <= 1.0:
        return Unverified(Cause.REWARD_MALFORMED, f"reward {reward:g} is not between 0 and 1")
    return Verified(reward=reward, dimensions=numbers)
