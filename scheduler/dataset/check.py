"""Everything that can be said of a data set without a live model, in one go.

First what the files say, then images and the tests' word on every transcript, in containers, then
attempts with known results, by the driver. What cannot be looked at here is told apart from what
is wrong.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from scheduler.dataset.agreement import disagreements
from scheduler.dataset.attempts import (
    SWEEP_NAME,
    Records,
    came_to,
    is_harness_fault,
    lost_dimensions,
    only,
    plan_attempts,
    run_attempts,
)
from scheduler.dataset.hints import instruction_faults, persona_faults
from scheduler.dataset.images import ensure_task_image
from scheduler.dataset.lock import TaskLock, digest_fault, read_lock
from scheduler.dataset.places import TaskTexts
from scheduler.dataset.proof import Proof, load_proof
from scheduler.dataset.report import ATTEMPTS, NOT_DUE, OK, DatasetReport, Mark, TaskReport, mark
from scheduler.dataset.verifying import prove
from scheduler.errors import DriverError
from scheduler.manifest.faults import ManifestError
from scheduler.manifest.roots import KIT_NAME
from scheduler.manifest.task import load_task
from scheduler.plan import BaseImage, Plan
from scheduler.report.names import counted
from scheduler.stop import StopSignal
from scheduler.view import Observer
from workers.container.docker import DockerEngine
from workers.container.interface import ContainerError, Engine, ImageBuildError
from workers.contract.task import Task
from workers.contract.task_folder import digest_of
from workers.storage.interface import StoreError

NODE = "tasks-check"


@dataclass
class _Case:
    """A task under check, as far as it could be read."""

    folder: Path
    report: TaskReport
    task: Task | None = None
    proof: Proof | None = None
    image: str | None = None

    @property
    def wanted(self) -> dict[str, str]:
        """Column to what the attempt must come to, of the attempts that can be made."""
        if self.task is None or self.task.fixture is None or self.proof is None:
            return {}
        attempts = self.proof.attempts
        return {column: attempts[name] for column, name in ATTEMPTS.items() if name in attempts}


@dataclass
class Check:
    """A check of some tasks of a data set."""

    folders: Sequence[Path]
    dataset: Path
    manifests: Path
    base_image: BaseImage | None
    store: str | None
    """URL of the store in which attempts are made; null: none are made."""
    shown: Observer | None = None
    """Is told what comes next, and of the attempts as they go."""
    stop: StopSignal = field(default_factory=StopSignal)

    def run(self) -> DatasetReport:
        """Looks at everything; blocks; called in the main thread.

        Raises:
            ManifestError: the lock, or a condition that attempts are made under, has faults.
        """
        started = time.monotonic()
        lock = read_lock(self.dataset)
        kit_digest = digest_of(self.kit, None)
        cases = [self._read(folder, lock, kit_digest) for folder in self.folders]
        plan = self._plan(cases)
        self._tell(f"building {counted(len(cases), 'image')} and judging their transcripts")
        asyncio.run(self._judge(cases, SWEEP_NAME if plan is None else plan.sweep))
        report = DatasetReport([case.report for case in cases])
        report.personas = mark(persona_faults(self.manifests))
        if plan is not None and not self.stop.draining:
            self._attempt(cases, plan, report)
        report.interrupted = self.stop.draining
        report.seconds = time.monotonic() - started
        return report

    def _tell(self, text: str) -> None:
        if self.shown is not None:
            self.shown.note(text)

    @property
    def kit(self) -> Path:
        """The verifier kit."""
        return self.manifests / KIT_NAME

    def _read(self, folder: Path, lock: TaskLock | None, kit_digest: str) -> _Case:
        """What the files say by themselves."""
        started = time.monotonic()
        case = _Case(folder, TaskReport(folder.name))
        marks, faults = case.report.marks, []
        try:
            case.task = load_task(folder, self.kit)
        except ManifestError as error:
            faults += str(error).splitlines()
        try:
            case.proof = load_proof(folder)
        except ManifestError as error:
            faults += str(error).splitlines()
        marks["schema"] = mark(faults)
        if case.task is not None:
            changed = digest_fault(lock, folder.name, case.task.digest, kit_digest)
            marks["digest"] = NOT_DUE if lock is None else mark([changed] if changed else [])
            marks["hints"] = mark(instruction_faults(case.task))
            if case.proof is not None:
                texts = TaskTexts(folder, case.task)
                marks["facts"] = mark(disagreements(case.proof.facts, texts))
        case.report.seconds += time.monotonic() - started
        return case

    def _plan(self, cases: list[_Case]) -> Plan | None:
        folders = [case.folder for case in cases if case.wanted]
        if self.store is None or not folders:
            return None
        return plan_attempts(folders, self.dataset, self.manifests, self.store, self.base_image)

    async def _judge(self, cases: list[_Case], sweep: str) -> None:
        """Images and transcripts, a few tasks at once."""
        try:
            engine = await DockerEngine.open(NODE)
        except ContainerError as error:
            for case in cases:
                case.report.marks["image"] = Mark("broken", (str(error),))
            return
        slots = asyncio.Semaphore(os.cpu_count() or 1)

        async def judge(case: _Case) -> None:
            async with slots:
                if case.task is None or self.stop.draining:
                    return
                started = time.monotonic()
                await self._image(engine, case, case.task, sweep)
                if case.image is not None and case.proof is not None:
                    await self._tests(engine, case, case.image, case.task, case.proof)
                case.report.seconds += time.monotonic() - started

        try:
            await asyncio.gather(*map(judge, cases))
        finally:
            await engine.close()

    async def _image(self, engine: Engine, case: _Case, task: Task, sweep: str) -> None:
        """Builds the image under the tag that the attempts' sweep will look for."""
        base = None if self.base_image is None else self.base_image.reference
        try:
            case.image = await ensure_task_image(engine, case.folder, task, sweep, base)
        except ImageBuildError as error:
            case.report.marks["image"] = mark([str(error)])
        except ContainerError as error:
            case.report.marks["image"] = Mark("broken", (str(error),))
        else:
            case.report.marks["image"] = OK

    async def _tests(
        self, engine: Engine, case: _Case, image: str, task: Task, proof: Proof
    ) -> None:
        try:
            faults = await prove(engine, image, case.folder, self.kit, task, proof)
        except ContainerError as error:
            case.report.marks["tests"] = Mark("broken", (str(error),))
        else:
            case.report.marks["tests"] = mark(faults)

    def _attempt(self, cases: list[_Case], plan: Plan, report: DatasetReport) -> None:
        """Makes the attempts and compares what they came to."""
        able = [case for case in cases if case.image is not None]
        chosen = only(
            plan,
            [
                (case.task.bare_name, ATTEMPTS[column])
                for case in able
                for column in case.wanted
                if case.task is not None
            ],
        )
        if not chosen.attempts:
            return
        self._tell(f"making {len(chosen.attempts)} attempts in real trials")
        records, reason = Records(), ""
        try:
            end, records = run_attempts(chosen, self.stop, self.shown)
            reason = end.reason or f"the sweep ended {end.state}"
        except (DriverError, StoreError) as error:
            reason = str(error)
        for case in able:
            for column, wanted in case.wanted.items():
                case.report.marks[column] = self._came_to(case, column, wanted, records, reason)

    def _came_to(
        self, case: _Case, column: str, wanted: str, records: Records, reason: str
    ) -> Mark:
        name = "" if case.task is None else case.task.bare_name
        record = records.by_cell.get((name, ATTEMPTS[column]))
        if record is None:
            return NOT_DUE if self.stop.draining else Mark("broken", (f"no attempt: {reason}",))
        case.report.seconds += sum(record.phase_seconds.values())
        came = came_to(record)
        if came == wanted:
            return OK
        lost = ", ".join(sorted(lost_dimensions(record)))
        line = f"should come to {wanted}, came to {came}"
        line += f" ({lost} lost)" if lost else ""
        line += f": {record.detail}" if record.detail else ""
        return Mark("broken" if is_harness_fault(record) else "fault", (line,))
