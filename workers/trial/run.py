"""Stage 6, trial: Lease -> TrialEnd.

The phases in order, the one place that turns faults into outcomes, and the teardown: resources
are on exit stacks and go in reverse order of acquisition, bounded, on every path.
"""

from __future__ import annotations

import asyncio
import time
import traceback
from collections.abc import AsyncIterator, Awaitable
from contextlib import (
    AbstractContextManager,
    AsyncExitStack,
    asynccontextmanager,
    nullcontext,
    suppress,
)
from datetime import UTC, datetime

from workers.container.agent_bundle import AgentBundle
from workers.container.disk import MIB
from workers.container.scratch import TRIALS
from workers.contract.agent_logs import kept_of
from workers.contract.outcome import Cause, Outcome, Phase, outcome_of
from workers.contract.result import Digests, TryRecord
from workers.contract.spec import CellSpec, Lease, Played, SweepSpec, TimeoutMultipliers
from workers.contract.trial import Commit, Control, TrialEnd, TrialFunction
from workers.trial import decide
from workers.trial.collect import EVIDENCE_ERROR_FILE, collect, keep_trail
from workers.trial.drive import drive
from workers.trial.errors import PhaseError, check_room, is_disk_full
from workers.trial.facts import Facts
from workers.trial.files import TrialFolder
from workers.trial.freeze import freeze, named
from workers.trial.handoff import (
    Job,
    Launched,
    Prepared,
    Provisioned,
    Tools,
    Unverified,
    Verified,
)
from workers.trial.launch import launch
from workers.trial.limits import with_longer_limits
from workers.trial.live import LiveLook
from workers.trial.play import Play
from workers.trial.prepare import prepare
from workers.trial.provision import provision
from workers.trial.relay_side import blaming
from workers.trial.seal import SecretFoundError, hash_files, seal
from workers.trial.secrets import Secrets
from workers.trial.token_check import token_differences
from workers.trial.verify import Verification, verify
from workers.trial.verify_state import verify_state

UNSTORED = frozenset({Cause.STORE_UNAVAILABLE, Cause.CLOCK_SKEW})
"""Causes of a try whose files the store did not take."""


def make_trial_function(sweep: SweepSpec, tools: Tools, bundle: AgentBundle) -> TrialFunction:
    """The function with which a node runs the tries of one sweep."""

    async def run(cell: CellSpec, lease: Lease, control: Control) -> TrialEnd:
        folder = TrialFolder(tools.workspace / TRIALS / f"{lease.attempt}-{lease.epoch}")
        cell = with_longer_limits(cell, sweep.timeout_multipliers)
        job = Job(sweep=sweep, cell=cell, lease=lease, folder=folder, secrets=Secrets())
        return await _Trial(job, tools, bundle, control).run()

    return run


class _Trial:
    """One try from lease to commit."""

    def __init__(self, job: Job, tools: Tools, bundle: AgentBundle, control: Control) -> None:
        self._job = job
        self._tools = tools
        self._bundle = bundle
        self._control = control
        self._facts = Facts()
        self._phase = Phase.PREPARE
        self._started_at = _now()

    async def run(self) -> TrialEnd:
        """Runs to the end; what goes wrong is an outcome."""
        outcome = await self._outcome()
        end = await self._sealed(outcome)
        folder = self._job.folder
        if end.record.phase is Phase.SEAL and end.record.cause in UNSTORED:
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
            if not is_disk_full(error):
                return self._unclassified(error)
            self._write_error(str(error))
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
        played = job.cell.played(job.sweep.agent)
        async with self._in(Phase.PREPARE):
            prepared = await prepare(job, tools, None if played else self._bundle)
        self._facts.image, self._facts.pulled = prepared.image, prepared.pulled
        if played:
            return await self._without_relay(played, prepared)
        async with self._resources("relay and gateway") as outer:
            async with self._in(Phase.PROVISION):
                provisioned = await provision(job, tools, outer, self._facts)
            with self._shown(provisioned):
                return await self._with_relay(prepared, provisioned)

    def _shown(self, provisioned: Provisioned) -> AbstractContextManager[None]:
        """Lets those see the trial who follow it."""
        showing = self._tools.showing
        if showing is None:
            return nullcontext()
        look = LiveLook(self._job, provisioned, self._tools.node, lambda: self._phase)
        return showing.of(self._job.lease.attempt, look)

    async def _without_relay(self, played: Played, prepared: Prepared) -> Outcome:
        """A task's own solution, or nobody, in place of a model."""
        container = AsyncExitStack()
        play = Play(played, self._job, prepared, self._tools, self._facts, self._in)
        try:
            return await play.walk(self._verification(prepared), container)
        finally:
            await self._tidy("container", container.aclose())

    async def _with_relay(self, prepared: Prepared, provisioned: Provisioned) -> Outcome:
        job, tools, facts = self._job, self._tools, self._facts
        container = AsyncExitStack()
        removal: asyncio.Future[None] | None = None
        try:
            async with self._in(Phase.LAUNCH):
                with blaming(provisioned.relay):
                    launched = await launch(job, prepared, provisioned, tools, container)
            async with self._in(Phase.DRIVE):
                driven = await drive(job, tools, provisioned, launched)
            facts.silences = driven.silences
            facts.storage_soft_mb = driven.layer_bytes and -(-driven.layer_bytes // MIB)
            async with self._in(Phase.FREEZE):
                frozen = await freeze(job, provisioned, launched)
            facts.oom_events, facts.freeze = frozen.oom_events, frozen.mode
            facts.agent_exits = dict(frozen.agent_exits)
            facts.survivors = named(frozen.survivors)
            if frozen.exit_state is not None:
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
                verified = await self._verify(prepared, launched)
                if isinstance(verified, Unverified):
                    # A verifier that could not write its word is no fault of the task.
                    check_room(job.folder.root)
            if isinstance(verified, Verified):
                facts.reward, facts.dimensions = verified.reward, dict(verified.dimensions)
            by_state = job.cell.task.freeze != "evidence"
            return decide.after_verification(
                driven,
                collected,
                verified,
                by_state=by_state,
                threshold=job.sweep.pass_threshold,
                node_oom=decide.killed_for_the_node(frozen),
            )
        finally:
            await self._tidy("container", removal or container.aclose())
            await self._tidy("gateway", provisioned.gateway.close())
            facts.usage = provisioned.gateway.usage()
            facts.token_differences = await asyncio.to_thread(token_differences, job, provisioned)
            facts.log_bytes_dropped = keep_trail(job, provisioned)

    async def _verify(self, prepared: Prepared, launched: Launched) -> Verified | Unverified:
        job, verification = self._job, self._verification(prepared)
        if job.cell.task.freeze == "evidence":
            return await verify(self._tools.engine, verification)
        self._facts.graded_live = bool(self._facts.survivors)
        return await verify_state(
            self._tools.engine, launched.container, verification, job.storage_bytes
        )

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
            self._facts.leftovers.append(
                f"{what}: clock teardown_s of {self._job.sweep.limits.teardown_s:g} s fired "
                f"after {ran:.1f} s"
            )
        elif step.exception() is not None:
            bound_s = self._job.sweep.limits.teardown_s
            self._facts.leftovers.append(
                f"{what}: {step.exception()}; clock teardown_s is {bound_s:g} s"
            )

    def _write_error(self, text: str) -> None:
        """Why there is no evidence, in the try's folder (Buzz harness contract)."""
        folder = self._job.folder
        if folder.out.is_dir() and not (folder.out / "evidence.json").is_file():
            # The record says the same: where there is no room for it twice, that must not become
            # the reason.
            with suppress(OSError):
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

        def struck(words: str) -> str:
            return job.secrets.strike(words.encode("utf-8", "replace")).decode()

        relay = facts.relay
        if relay is not None and relay.archived is not None:
            # A relay knows the attestations, and may quote what it refuses.
            relay = relay.model_copy(update={"archived": struck(relay.archived)})
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
                "detail": struck(outcome.detail),
                "evidence_refs": kept_of(outcome.evidence_refs, files),
                "probe": job.lease.probe,
                "endpoint": outcome.provider and outcome.provider.endpoint,
                "provider": outcome.provider,
                "reward": facts.reward,
                "dimensions": facts.dimensions,
                "pass_threshold": _unless_one(job.sweep.pass_threshold),
                "timeout_multipliers": job.sweep.timeout_multipliers
                if job.sweep.timeout_multipliers != TimeoutMultipliers()
                else None,
                "started_at": self._started_at,
                "ended_at": _now(),
                "phase_seconds": facts.seconds,
                "usage": facts.usage,
                "token_differences": facts.token_differences,
                "node": self._tools.node,
                "epoch": (job.lease.epoch.generation, job.lease.epoch.counter),
                "digests": Digests(
                    task=task.digest,
                    condition=job.cell.condition.digest,
                    image=facts.image,
                    pulled=facts.pulled,
                    evidence=facts.evidence,
                ),
                "relay": relay,
                "files": files,
                "leftovers": tuple(map(struck, facts.leftovers)),
                "silences": facts.silences,
                "oom_events": facts.oom_events,
                "agent_exits": facts.agent_exits,
                "freeze": facts.freeze,
                "graded_live": facts.graded_live,
                "survivors": tuple(map(struck, facts.survivors)),
                "log_bytes_dropped": facts.log_bytes_dropped,
                "storage_soft_mb": facts.storage_soft_mb,
                "clock_skew_s": self._tools.clock_skew_s(),
                "traceback": facts.traceback and struck(facts.traceback),
            }
        )


def _unless_one(threshold: float) -> float | None:
    return None if threshold == decide.PASS_REWARD else threshold


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
