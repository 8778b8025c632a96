"""A node actor whose trials are simulated; Ray imports it on the node's side."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path

from tests.scheduler.builders import record
from workers.actor import NodeActor, NodeSetupError, OpenOptions
from workers.config import NodeConfig
from workers.contract.budget import Spending
from workers.contract.outcome import Cause
from workers.contract.result import TryRecord, Usage, result_key, try_prefix
from workers.contract.spec import CellSpec, Lease, SweepSpec
from workers.contract.trial import Commit, Control, TrialEnd, TrialFunction
from workers.storage import Store, open_store


class FakeNodeActor(NodeActor):
    """Trials take ``TRIAL_S`` of the environment and pass, unless they are cancelled before.

    Where ``DIES_ONCE`` names a file, the node kills itself in its third trial if the file is
    not there yet. Where ``REFUSES`` is set, it cannot be opened.

    A node of a cluster does not have its driver's environment. Beside a file store it finds the
    file ``trial_s``, read when a trial starts, or ``trial_s-<attempt>``; ``calls``, how many model
    calls each trial makes; and ``wall_ahead_s``, how wrong its clock is. There it also writes a
    line into ``starts`` for every trial that it starts.
    """

    ahead_s = 0.0
    beside = Path("/nowhere")

    async def protocol(self) -> str:
        """Another one where the file ``protocol`` is there."""
        other = self.beside / "protocol"
        return other.read_text() if other.exists() else await super().protocol()

    def wall(self) -> float:  # type: ignore[override]
        return time.time() + self.ahead_s

    async def assemble(
        self, sweep: SweepSpec, options: OpenOptions, config: NodeConfig, owned: AsyncExitStack
    ) -> TrialFunction:
        """Needs no Docker."""
        if why := os.environ.get("REFUSES"):
            raise NodeSetupError(why)
        store = open_store(sweep.store)
        beside = self.beside = Path(sweep.store.removeprefix("file://")).parent
        self.ahead_s = _number(beside / "wall_ahead_s", 0.0)
        begun = 0

        async def run(cell: CellSpec, lease: Lease, control: Control) -> TrialEnd:
            nonlocal begun
            begun += 1
            with (beside / "starts").open("a") as starts:
                starts.write(f"{lease.attempt} {lease.epoch} {os.getpid()}\n")
            if begun == 3:
                _die_once()
            spent = Spending()
            cause = Cause.CANCELLED
            for _ in range(int(_number(beside / "calls", 0))):
                if await self.purse.admit(f"{lease.attempt}/{lease.epoch}") is not None:
                    cause = Cause.SWEEP_BUDGET
                    break
                spent = spent + Spending(calls=1)
            seconds = _number(beside / "trial_s", float(os.environ.get("TRIAL_S", "0.05")))
            seconds = _number(beside / f"trial_s-{lease.attempt}", seconds)
            try:
                async with asyncio.timeout(seconds):
                    await control.cancelled.wait()
            except TimeoutError:
                cause = Cause.NONE if cause is Cause.CANCELLED else cause
            skew = None if self._node is None else self._node.clock_skew_s
            ended = record(cell, lease, cause, node=options.node)
            usage = Usage(calls=spent.calls, counted=spent)
            ended = ended.model_copy(update={"clock_skew_s": skew, "usage": usage})
            return _seal(store, ended, control.lease_valid)

        return run


def _number(path: Path, default: float) -> float:
    return float(path.read_text()) if path.exists() else default


def _seal(store: Store, ended: TryRecord, lease_valid: Callable[[], bool]) -> TrialEnd:
    """As the phase of that name does it."""
    document = ended.to_json().encode() + b"\n"
    prefix = try_prefix(ended.sweep, ended.attempt, ended.try_)
    store.put(f"{prefix}/try.json", document)
    if ended.cause is not Cause.NONE:
        return TrialEnd(ended, Commit.NONE)
    if not lease_valid():
        store.put(f"{prefix}/late.json", document)
        return TrialEnd(ended, Commit.LATE)
    created = store.create(result_key(ended.sweep, ended.attempt), document)
    return TrialEnd(ended, Commit.WRITTEN if created else Commit.SUPERSEDED)


def _die_once() -> None:
    mark = os.environ.get("DIES_ONCE")
    if mark and not Path(mark).exists():
        Path(mark).touch()
        os.kill(os.getpid(), signal.SIGKILL)
