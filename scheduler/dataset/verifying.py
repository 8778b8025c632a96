"""A task's own tests on the transcripts of its proof, in a sealed container of its own image.

One container judges all transcripts of a task, one after the other, so that a task costs one
start. Its tests see what a verifier sees in a trial: evidence, stored inputs, themselves.
"""

from __future__ import annotations

import json
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
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
    """What the tests said to one transcript."""

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
    with tempfile.TemporaryDirectory(prefix="apiary-proof-") as scratch:
        root = Path(scratch)
        _lay_out(root, folder, kit, task, proof)
        count = len(proof.accepted) + len(proof.refused)
        seconds = START_S + count * task.config.verifier.timeout_sec
        try:
            await engine.run_once(_spec(image, root, task, seconds), seconds)
        except ContainerTimeoutError:
            return [f"the tests took more than {seconds:g} s for {count} transcripts"]
        verdicts = {
            transcript.name: _verdict(root / "out" / f"{number:03}")
            for number, transcript in enumerate((*proof.accepted, *proof.refused))
        }
    return [*misjudged(proof, verdicts)]


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


def _lay_out(root: Path, folder: Path, kit: Path, task: Task, proof: Proof) -> None:
    """Writes cases, inputs and tests below a folder that a container may read."""
    root.chmod(0o755)
    cached = shutil.ignore_patterns("__pycache__")
    shutil.copytree(folder / "tests", root / "tests", ignore=cached)
    shutil.copytree(kit, root / "tests" / "verifier_kit", ignore=cached, dirs_exist_ok=True)
    for number, transcript in enumerate((*proof.accepted, *proof.refused)):
        case = root / "cases" / f"{number:03}"
        case.mkdir(parents=True)
        data = json.dumps(evidence_of(task, transcript), indent=2, sort_keys=True) + "\n"
        (case / "buzz-evidence.json").write_text(data, "utf-8")
    (root / "inputs").mkdir()
    for name, text in proof.inputs.items():
        target = root / "inputs" / name.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, "utf-8")
    for name in ("logs", "out"):
        # Images may have any user.
        (root / name).mkdir()
        (root / name).chmod(0o777)


def _spec(image: str, root: Path, task: Task, seconds: float) -> ContainerSpec:
    environment = task.config.environment
    return ContainerSpec(
        image=image,
        command=("bash", "-c", _LOOP),
        labels={
            "apiary.sweep": "tasks-check",
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
    return Verdict({name: float(value) for name, value in told.items()})


def _read(path: Path) -> str:
    try:
        facts = path.lstat()
        if not stat.S_ISREG(facts.st_mode) or facts.st_size > REWARD_BYTES:
            return ""
        return path.read_text("utf-8", errors="replace")
    except OSError:
        return ""
