"""A task's own tests on evidence, in a sealed container of its own image.

The evidence is that of a proof's transcripts, or what tries have left in a store. One container
judges many, one after the other, so that they cost one start. The tests see what a verifier sees
in a trial: evidence, stored inputs, themselves.
"""

from __future__ import annotations

import asyncio
import json
import math
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scheduler.dataset.proof import Proof, Refused, Transcript
from scheduler.dataset.transcript import evidence_of
from workers.container.interface import ContainerSpec, ContainerTimeoutError, Engine, Mount
from workers.contract.task import Task

START_S = 60.0
"""For the container itself, beside the verifier's time for each transcript."""
GRACE_S = 120.0
REWARD_BYTES = 64 * 1024

_LOOP = """\
for case in /cases/*; do
  name=${case##*/}
  rm -rf /logs/artifacts /logs/verifier
  mkdir -p /logs/artifacts /logs/verifier "/out/$name"
  cp "$case/buzz-evidence.json" /logs/artifacts/buzz-evidence.json
  bash /tests/test.sh >"/out/$name/output.log" 2>&1
  echo $? >"/out/$name/exit_code"
  cp /logs/verifier/reward.json "/out/$name/reward.json" 2>/dev/null
done
chmod -R a+rwX /out /logs
"""


@dataclass(frozen=True)
class Verdict:
    """What the tests said to one piece of evidence."""

    dimensions: dict[str, float]
    """With ``reward``; empty if there was no usable word."""
    fault: str = ""


async def prove(
    engine: Engine, image: str, folder: Path, kit: Path, task: Task, proof: Proof
) -> list[str]:
    """Runs every transcript; says what was judged otherwise than the proof has it.

    Args:
        engine: where to run.
        image: the task's, by id.
        folder: the task's.
        kit: the verifier kit.
        task: as read from the folder.
        proof: the task's.

    Raises:
        ContainerError: the container could not be run.
    """
    transcripts = (*proof.accepted, *proof.refused)
    inputs = {name: text.encode() for name, text in proof.inputs.items()}
    evidence = [
        (json.dumps(evidence_of(task, each), indent=2, sort_keys=True) + "\n").encode()
        for each in transcripts
    ]
    try:
        verdicts = await judge(
            engine, image, folder, kit, task, evidence, inputs, sweep="tasks-check"
        )
    except ContainerTimeoutError:
        seconds = seconds_for(task, len(evidence))
        return [f"the tests took more than {seconds:g} s for {len(evidence)} transcripts"]
    names = (each.name for each in transcripts)
    return [*misjudged(proof, dict(zip(names, verdicts, strict=True)))]


async def judge(
    engine: Engine,
    image: str,
    folder: Path,
    kit: Path,
    task: Task,
    evidence: Sequence[bytes],
    inputs: Mapping[str, bytes],
    *,
    sweep: str,
) -> list[Verdict]:
    """What the tests say to each of some pieces of evidence.

    Args:
        engine: where to run.
        image: the task's, by id.
        folder: the task's.
        kit: the verifier kit.
        task: as read from the folder.
        evidence: each as the file that a verifier reads.
        inputs: what they share: path inside the image to contents.
        sweep: for the container's label.

    Raises:
        ContainerTimeoutError: they took longer than ``seconds_for``.
        ContainerError: the container could not be run.
    """
    with tempfile.TemporaryDirectory(prefix="apiary-judge-") as scratch:
        root = Path(scratch)
        await asyncio.to_thread(_lay_out, root, folder, kit, evidence, inputs)
        seconds = seconds_for(task, len(evidence))
        await engine.run_once(_spec(image, root, task, seconds, sweep), seconds)
        return [_verdict(root / "out" / f"{number:03}") for number in range(len(evidence))]


def seconds_for(task: Task, count: int) -> float:
    """How long the tests may take for so many pieces of evidence."""
    return START_S + count * task.config.verifier.timeout_sec


def misjudged(proof: Proof, verdicts: dict[str, Verdict]) -> Iterator[str]:
    """What verdicts say otherwise than a proof, and which dimensions it never loses. Pure."""
    dimensions: set[str] = set()
    for transcript in (*proof.accepted, *proof.refused):
        verdict = verdicts[transcript.name]
        dimensions |= verdict.dimensions.keys() - {"reward"}
        if line := _difference(transcript, verdict):
            yield f"{transcript.name}: {line}"
    for name in sorted(dimensions - set(proof.dimensions)):
        yield f"no refused transcript loses {name}"


def _difference(transcript: Transcript, verdict: Verdict) -> str:
    if verdict.fault:
        return verdict.fault
    scores = {name: value for name, value in verdict.dimensions.items() if name != "reward"}
    lost = {name for name, value in scores.items() if value < 1.0}
    wanted = set(transcript.loses) if isinstance(transcript, Refused) else set()
    if unknown := wanted - scores.keys():
        return f"the tests have no dimension {', '.join(sorted(unknown))}"
    if lost != wanted:
        return f"should lose {_listed(wanted)}, lost {_listed(lost)}"
    passed = verdict.dimensions["reward"] == 1.0
    if passed == isinstance(transcript, Refused):
        return (
            f"reward {verdict.dimensions['reward']:g} for a transcript that loses {_listed(lost)}"
        )
    return ""


def _listed(names: set[str]) -> str:
    return ", ".join(sorted(names)) or "nothing"


def _lay_out(
    root: Path, folder: Path, kit: Path, evidence: Sequence[bytes], inputs: Mapping[str, bytes]
) -> None:
    """Writes cases, inputs and tests below a folder that a container may read; blocks."""
    root.chmod(0o755)
    cached = shutil.ignore_patterns("__pycache__")
    shutil.copytree(folder / "tests", root / "tests", ignore=cached)
    shutil.copytree(kit, root / "tests" / "verifier_kit", ignore=cached, dirs_exist_ok=True)
    for number, data in enumerate(evidence):
        case = root / "cases" / f"{number:03}"
        case.mkdir(parents=True)
        (case / "buzz-evidence.json").write_bytes(data)
    (root / "inputs").mkdir()
    for name, content in inputs.items():
        target = root / "inputs" / name.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
    for name in ("logs", "out"):
        # Images may have any user.
        (root / name).mkdir()
        (root / name).chmod(0o777)


def _spec(image: str, root: Path, task: Task, seconds: float, sweep: str) -> ContainerSpec:
    environment = task.config.environment
    return ContainerSpec(
        image=image,
        command=("bash", "-c", _LOOP),
        labels={
            "apiary.sweep": sweep,
            "apiary.expires": str(int(time.time() + seconds + GRACE_S)),
        },
        environment={"PYTHONDONTWRITEBYTECODE": "1"},
        mounts=(
            Mount(root / "tests", "/tests"),
            Mount(root / "cases", "/cases"),
            Mount(root / "inputs", "/inputs"),
            Mount(root / "logs", "/logs", read_only=False),
            Mount(root / "out", "/out", read_only=False),
        ),
        network="none",
        cpus=environment.cpus,
        memory_mb=environment.memory_mb,
    )


def _verdict(place: Path) -> Verdict:
    """What stands in the folder of one case; a container wrote it."""
    if place.is_symlink():
        return Verdict({}, "the tests put a link where their answer is read")
    code = _read(place / "exit_code").strip()
    if code != "0":
        output = _read(place / "output.log").strip()[-300:]
        return Verdict({}, f"the tests ended with {code or 'nothing'}: {output}")
    try:
        told: Any = json.loads(_read(place / "reward.json"))
    except (ValueError, RecursionError):
        return Verdict({}, "the tests left no reward.json that can be read")
    if not isinstance(told, dict) or "reward" not in told:
        return Verdict({}, "reward.json has no 'reward'")
    for name, value in told.items():
        if isinstance(value, bool) or not isinstance(value, int | float):
            return Verdict({}, f"reward.json: {name!r} is not a number")
        if not math.isfinite(value):
            return Verdict({}, f"reward.json: {name!r} is not a finite number")
    if not 0.0 <= told["reward"] <= 1.0:
        return Verdict({}, f"reward.json: reward {told['reward']:g} is not between 0 and 1")
    return Verdict({name: float(value) for name, value in told.items()})


def _read(path: Path) -> str:
    try:
        facts = path.lstat()
        if not stat.S_ISREG(facts.st_mode) or facts.st_size > REWARD_BYTES:
            return ""
        return path.read_text("utf-8", errors="replace")
    except OSError:
        return ""
