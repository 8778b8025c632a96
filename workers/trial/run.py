"""Stage 6, trial: Lease -> TrialEnd.

The phases in order, the one place that turns faults into outcomes, and the teardown: resources
are on exit stacks and go in reverse order of acquisition, bounded, on every path.
"""

from __future__ import annotations

import asyncio
import errno
import time
import traceback
from collections.abc import AsyncIterator, Awaitable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime

from workers.container.agent_bundle import AgentBundle
from workers.container.scratch import TRIALS
from workers.contract.outcome import Cause, Outcome, Phase, outcome_of
from workers.contract.result import Digests, TryRecord, Usage
from workers.contract.spec import CellSpec, Lease, SweepSpec
from workers.contract.trial import Commit, Control, TrialEnd, TrialFunction
from workers.trial import decide
from workers.trial.collect import EVIDENCE_ERROR_FILE, collect, keep_trail
from workers.trial.drive import drive
from workers.trial.errors import PhaseError
from workers.trial.files import TrialFolder
from workers.trial.freeze import freeze
from workers.trial.handoff import Job, Prepared, Provisioned, Tools, Verified
from workers.trial.launch import launch
from workers.trial.prepare import prepare
from workers.trial.provision import provision
from workers.trial.seal import SecretFoundError, hash_files, seal
from workers.trial.secrets import Secrets
from workers.trial.verify import Verification, verify


def make_trial_function(sweep: SweepSpec, tools: Tools, bundle: AgentBundle) -> TrialFunction:
    """The function with which a node runs the tries of one sweep."""

    async def run(cell: CellSpec, lease: Lease, control: Control) -> TrialEnd:
        folder = TrialFolder(tools.workspace / TRIALS / f"{lease.attempt}-{lease.epoch}")
        job = Job(sweep=sweep, cell=cell, lease=lease, folder=folder, secrets=Secrets())
        return await _Trial(job, tools, bundle, control).run()

    return run


@dataclass
class _Facts:
    """What the record says beside the outcome; filled as the trial goes."""

    image: str | None = None
    evidence: str | None = None
    reward: float | None = None
    dimensions: dict[str, float] = field(default_factory=dict)
    usage: Usage = field(default_factory=Usage)
    silences: tuple[float, ...] = ()
    oom_events: int = 0
    leftovers: list[str] = field(default_factory=list)
    traceback: str | None = None
    seconds: dict[str, float] = field(default_factory=dict)


class _Trial:
    """One try from lease to commit."""

    def __init__(self, job: Job, tools: Tools, bundle: AgentBundle, control: Control) -> None:
        self._job = job
        self._tools = tools
        self._bundle = bundle
        self._control = control
        self._facts = _Facts()
        self._phase = Phase.PREPARE
        self._started_at = _now()

    async def run(self) -> TrialEnd:
        """Runs to the end; what goes wrong is an outcome."""
        outcome = await self._outcome()
        end = await self._sealed(outcome)
        folder = self._job.folder
        if end.record.cause is Cause.STORE_UNAVAILABLE:
            # What the store did not take stays on the node's disk: it is the only copy.
            await self._tidy("trial folder", asyncio.to_thread(folder.keep))
        else:
            await self._tidy("trial folder", asyncio.to_thread(folder.remove))
        return end

    async def _outcome(self) -> Outcome:
        """The walk, raced against the operator's wish to stop."""
        walk = asyncio.ensure_future(self._walk_safely())
        stop = asyncio.ensure_future(self._control.cancelled.wait())
        try:
            await asyncio.wait({walk, stop}, return_when=asyncio.FIRST_COMPLETED)
            if walk.done():
                return walk.result()
            walk.cancel()
            with suppress(asyncio.CancelledError):
                # The walk may have ended between the two; then its outcome stands.
                return await walk
            self._write_error("cancelled by the operator")
            return outcome_of(Cause.CANCELLED, self._phase, "the operator stopped the sweep")
        finally:
            stop.cancel()
            walk.cancel()

    async def _walk_safely(self) -> Outcome:
        try:
            return await self._walk()
        except PhaseError as error:
            self._write_error(str(error))
            return outcome_of(error.cause, self._phase, error.detail)
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                return self._unclassified(error)
            return outcome_of(Cause.DISK_FULL, self._phase, str(error))
        except Exception as error:  # noqa: BLE001 - anything else is a bug of ours, and is shown as one
            return self._unclassified(error)

    def _unclassified(self, error: Exception) -> Outcome:
        self._facts.traceback = "".join(traceback.format_exception(error))
        self._write_error(f"unclassified: {type(error).__name__}")
        return outcome_of(Cause.UNCLASSIFIED, self._phase, f"{type(error).__name__}: {error}")

    async def _walk(self) -> Outcome:
        """The eight phases; ``seal`` follows, whatever the outcome."""
        job, tools = self._job, self._tools
        await asyncio.to_thread(job.folder.create)
        async with self._in(Phase.PREPARE):
            prepared = await prepare(job, tools, self._bundle)
        self._facts.image = prepared.image
        async with self._resources("relay and gateway") as outer:
            async with self._in(Phase.PROVISION):
                provisioned = await provision(job, tools, outer)
            return await self._with_relay(prepared, provisioned)

    async def _with_relay(self, prepared: Prepared, provisioned: Provisioned) -> Outcome:
        job, tools, facts = self._job, self._tools, self._facts
        container = AsyncExitStack()
        removal: asyncio.Future[None] | None = None
        try:
            async with self._in(Phase.LAUNCH):
                launched = await launch(job, prepared, provisioned, tools, container)
            async with self._in(Phase.DRIVE):
                driven = await drive(job, provisioned, launched)
            facts.silences = driven.silences
            async with self._in(Phase.FREEZE):
                frozen = await freeze(job, provisioned, launched)
            facts.oom_events = frozen.oom_events
            # It is dead: it is removed beside what follows, and waited for below.
            removal = asyncio.ensure_future(container.aclose())
            async with self._in(Phase.COLLECT):
                collected = await collect(job, provisioned, driven)
            facts.evidence = collected.evidence_digest
            settled = decide.before_verification(
                driven, frozen, collected, provisioned.orchestrator.id
            )
            if settled:
                return settled
            async with self._in(Phase.VERIFY):
                verified = await verify(tools.engine, self._verification(prepared))
            if isinstance(verified, Verified):
                facts.reward, facts.dimensions = verified.reward, dict(verified.dimensions)
            return decide.after_verification(driven, collected, verified)
        finally:
            await self._tidy("container", removal or container.aclose())
            await self._tidy("gateway", provisioned.gateway.close())
            facts.usage = provisioned.gateway.usage()
            keep_trail(job, provisioned)

    def _verification(self, prepared: Prepared) -> Verification:
        job = self._job
        return Verification(
            task=job.cell.task,
            image=prepared.image,
            tests=prepared.tests,
            folder=job.folder,
            labels={**job.labels, "apiary.node": self._tools.node},
            secrets=job.secrets,
        )

    @asynccontextmanager
    async def _in(self, phase: Phase) -> AsyncIterator[None]:
        """Marks and times a phase."""
        self._phase = phase
        self._control.entered(phase)
        started = time.monotonic()
        try:
            yield
        finally:
            self._facts.seconds[phase.value] = round(time.monotonic() - started, 6)

    @asynccontextmanager
    async def _resources(self, what: str) -> AsyncIterator[AsyncExitStack]:
        """An exit stack whose end is bounded, and whose faults are leftovers, not outcomes."""
        stack = AsyncExitStack()
        try:
            yield stack
        finally:
            await self._tidy(what, stack.aclose())

    async def _tidy(self, what: str, closing: Awaitable[None]) -> None:
        """Runs one step of the teardown, bounded; what it cannot do is a leftover.

        It goes on while its trial is being cancelled: stopping here would leave containers.
        """
        step = asyncio.ensure_future(closing)
        started = time.monotonic()
        give_up = started + self._job.sweep.limits.teardown_s
        while not step.done() and time.monotonic() < give_up:
            with suppress(asyncio.CancelledError):
                await asyncio.wait({step}, timeout=give_up - time.monotonic())
        if not step.done():
            step.cancel()
            ran = time.monotonic() - started
            self._facts.leftovers.append(f"{what}: clock teardown_s fired after {ran:.1f} s")
        elif step.exception() is not None:
            self._facts.leftovers.append(f"{what}: {step.exception()}")

    def _write_error(self, text: str) -> None:
        """Why there is no evidence, in the try's folder (Buzz harness contract)."""
        folder = self._job.folder
        if folder.out.is_dir() and not (folder.out / "evidence.json").exists():
            folder.write(EVIDENCE_ERROR_FILE, f"{text}\n".encode(), self._job.secrets)

    async def _sealed(self, outcome: Outcome) -> TrialEnd:
        """Seals the try; a store that does not answer changes the outcome."""
        self._control.entered(Phase.SEAL)
        started = time.monotonic()
        job = self._job
        try:
            files = await asyncio.to_thread(self._hashed)
        except SecretFoundError as error:
            outcome = outcome_of(Cause.UNCLASSIFIED, Phase.SEAL, str(error))
            files = {}
        self._facts.seconds[Phase.SEAL.value] = round(time.monotonic() - started, 6)
        record = self._record(outcome, files)
        try:
            commit = await seal(
                self._tools.store,
                job.folder.out,
                record,
                self._control.lease_valid,
                job.sweep.limits.seal_s,
            )
        except PhaseError as error:
            outcome = outcome_of(error.cause, Phase.SEAL, error.detail)
            return TrialEnd(self._record(outcome, files), Commit.NONE)
        return TrialEnd(record, commit)

    def _hashed(self) -> dict[str, str]:
        out = self._job.folder.out
        return hash_files(out, self._job.secrets) if out.is_dir() else {}

    def _record(self, outcome: Outcome, files: dict[str, str]) -> TryRecord:
        job, facts = self._job, self._facts
        task = job.cell.task
        strike = job.secrets.strike
        return TryRecord.model_validate(
            {
                "sweep": job.sweep.sweep,
                "attempt": job.lease.attempt,
                "index": job.lease.index,
                "try": job.try_,
                "cell": job.cell.cell,
                "condition": job.cell.condition.condition,
                "task": task.name,
                "layer": task.layer,
                "verdict": outcome.verdict,
                "blame": outcome.blame,
                "phase": outcome.phase,
                "cause": outcome.cause,
                "detail": strike(outcome.detail.encode("utf-8", "replace")).decode(),
                "evidence_refs": outcome.evidence_refs,
                "reward": facts.reward,
                "dimensions": facts.dimensions,
                "started_at": self._started_at,
                "ended_at": _now(),
                "phase_seconds": facts.seconds,
                "usage": facts.usage,
                "node": self._tools.node,
                "epoch": (job.lease.epoch.generation, job.lease.epoch.counter),
                "digests": Digests(
                    task=task.digest,
                    condition=job.cell.condition.digest,
                    image=facts.image,
                    evidence=facts.evidence,
                ),
                "files": files,
                "leftovers": tuple(facts.leftovers),
                "silences": facts.silences,
                "oom_events": facts.oom_events,
                "traceback": facts.traceback
                and strike(facts.traceback.encode("utf-8", "replace")).decode(),
            }
        )


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
