"""``python -m tests.workers.trial.crowd [TRIALS [SECONDS]]``: what trials cost that only wait.

Node, trials, relays, gateway, folders and store are the real ones. Containers are simulated,
since hundreds do not fit on a small machine; their agents run in one other process, so that what
is measured here is the node's alone.
"""

from __future__ import annotations

import asyncio
import gc
import json
import secrets
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, cast

from tests.workers.relay.load import resident_mb
from tests.workers.trial.stage import PERSONA, make_condition, make_task, write_task
from workers.container.interface import Container, ContainerError, ContainerSpec, ExitState
from workers.contract.base import sha256_hex
from workers.contract.endpoint import Endpoint
from workers.contract.report import Orders, Progress
from workers.contract.spec import CellSpec, Epoch, Lease, Limits, SweepSpec, attempt_id, cell_id
from workers.contract.task_folder import archive_key, pack
from workers.gateway import Gateway
from workers.node import Node, settle_memory
from workers.storage import ObservedStore, open_store
from workers.storage.observed import Heard
from workers.trial.handoff import GATEWAY_PORT, Tools
from workers.trial.run import make_trial_function

ROOT = Path(__file__).resolve().parents[3]
OFTEN_S = 0.99
"""A shorter timer counts as a poll that is faster than once a second."""
TICK_S = 0.01
TERM_S = 600.0
START_S = 300.0


class WaitingContainer:
    """A container as the engine's interface has it; its agents are in another process."""

    layer = None

    def __init__(self, spec: ContainerSpec, tell: Callable[[dict[str, Any]], None]) -> None:
        self.id = secrets.token_hex(32)
        self._spec = spec
        self._tell = tell
        self._end: asyncio.Future[ExitState] = asyncio.get_running_loop().create_future()

    def listen(self, port: int) -> socket.socket:
        """A socket on this machine's loopback; the agents dial it in place of theirs."""
        made = socket.create_server(("127.0.0.1", 0), backlog=16)
        if port != GATEWAY_PORT:
            logs = next(each.source for each in self._spec.mounts if not each.read_only)
            for agent in json.loads(self._spec.environment["APIARY_AGENTS"]):
                order = {"agent": agent, "port": made.getsockname()[1], "logs": str(logs)}
                self._tell(order)
        return made

    async def ended(self, timeout_s: float) -> ExitState | None:
        await asyncio.wait([self._end], timeout=timeout_s)
        return self._end.result() if self._end.done() else None

    async def kill(self, timeout_s: float) -> ExitState:
        if not self._end.done():
            self._end.set_result(ExitState(137, oom_killed=False, signalled=True))
        return self._end.result()

    async def remove(self, timeout_s: float) -> None:
        await self.kill(timeout_s)

    async def output(self, timeout_s: float) -> str:
        return ""

    def oom_events(self) -> int:
        return 0

    def memory_limit_reached(self) -> bool | None:
        return False

    def __getattr__(self, name: str) -> Any:
        raise ContainerError(f"a simulated container knows no {name}")


class WaitingEngine:
    """The engine of simulated containers; its verifiers find everything well."""

    def __init__(self, tell: Callable[[dict[str, Any]], None]) -> None:
        self._tell = tell

    async def ensure_image(self, context: Path, **options: Any) -> str:
        return f"sha256:{'0' * 64}"

    async def start(self, spec: ContainerSpec, timeout_s: float) -> Container:
        made: Any = WaitingContainer(spec, self._tell)
        return cast(Container, made)

    async def run_once(self, spec: ContainerSpec, timeout_s: float) -> tuple[ExitState, str]:
        logs = next(each.source for each in spec.mounts if each.target == "/logs/verifier")
        (logs / "reward.json").write_text('{"reward": 1.0}')
        (logs / "details.json").write_text("{}")
        return ExitState(0, oom_killed=False), ""


class NoBundle:
    """Agents that run elsewhere need no files."""

    async def mounts(self, image: str) -> tuple[()]:
        return ()


@contextmanager
def agents() -> Iterator[Callable[[dict[str, Any]], None]]:
    """The process of the agents; gives what tells it something, from any thread."""
    with subprocess.Popen(
        [sys.executable, "-m", "tests.workers.trial.waiting_agents"],
        stdin=subprocess.PIPE,
        cwd=ROOT,
    ) as process:
        assert process.stdin is not None
        pipe, lock = process.stdin, threading.Lock()

        def tell(order: dict[str, Any]) -> None:
            with lock:
                pipe.write(json.dumps(order).encode() + b"\n")
                pipe.flush()

        try:
            yield tell
        finally:
            pipe.close()
            try:
                process.wait(30.0)
            finally:
                process.kill()


@dataclass(frozen=True)
class Crowd:
    """What was measured; of the node's process alone."""

    trials: int
    mb_per_trial: float
    timers_per_trial_s: float
    """Timers of under a second, for each trial and second of waiting."""
    cpu_share: float
    """CPU seconds for each second of waiting, all trials together."""
    lag_p50_ms: float
    lag_p99_ms: float
    """By how much a tick of the event loop is late, while all wait."""
    idle_lag_p99_ms: float
    """The same before there was any trial."""
    ending_lag_p99_ms: float
    """The same while all of them end together."""
    cpu_s_per_trial: float
    """CPU seconds for all of a trial but its waiting."""
    puts_per_attempt: float
    """Objects that the store was given for each attempt."""
    passed: int


class Lag:
    """Ticks, and notes how late each is."""

    def __init__(self) -> None:
        self._late: list[float] = []

    async def during(self, seconds: float, until: Callable[[], bool] | None = None) -> list[float]:
        """Lateness of every tick, milliseconds, sorted."""
        self._late = []
        give_up = time.monotonic() + seconds
        while time.monotonic() < give_up and not (until and until()):
            before = time.monotonic()
            await asyncio.sleep(TICK_S)
            self._late.append(1e3 * (time.monotonic() - before - TICK_S))
        return sorted(self._late)


def share(sorted_values: list[float], part: float) -> float:
    """The value that a part of all values does not exceed."""
    return sorted_values[min(len(sorted_values) - 1, int(part * len(sorted_values)))]


@contextmanager
def short_timers(loop: asyncio.AbstractEventLoop) -> Iterator[list[float]]:
    """Every timer of less than a second that is set meanwhile, but the ticks'."""
    found: list[float] = []
    plain = loop.call_at

    def call_at(when: float, *arguments: Any, **options: Any) -> asyncio.TimerHandle:
        delay = when - loop.time()
        if delay < OFTEN_S and abs(delay - TICK_S) > TICK_S / 10:
            found.append(delay)
        return plain(when, *arguments, **options)

    loop.call_at = call_at  # type: ignore[method-assign,assignment]
    try:
        yield found
    finally:
        del loop.call_at


async def measure(trials: int, window_s: float, folder: Path) -> Crowd:
    """Starts all trials, lets them wait, and ends them."""
    loop = asyncio.get_running_loop()
    loop.set_default_executor(ThreadPoolExecutor(32))
    puts: list[str] = []

    def heard(operation: str, result: str, seconds: float) -> None:
        if operation in ("put", "put_file", "create"):
            puts.append(operation)

    async with AsyncExitStack() as owned:
        tell = owned.enter_context(agents())
        node, cell = await _node(folder, tell, trials, heard, owned)
        settle_memory()  # as a node does when it has been opened
        # What the first one loads is no trial's cost.
        number, _ = await _leased(node, cell, range(1), 0)
        idle = await Lag().during(window_s / 4)
        gc.collect()
        before_mb, before_s = resident_mb(), time.process_time()
        number, answer = await _leased(node, cell, range(1, trials + 1), number)
        gc.collect()
        used_mb, started_s = resident_mb() - before_mb, time.process_time()
        with short_timers(loop) as timers:
            began, spent = time.monotonic(), time.process_time()
            waiting = await Lag().during(window_s)
            waited_s, cpu_s = time.monotonic() - began, time.process_time() - spent
        ended_s = time.process_time()
        tell({"go": True})
        ending = await Lag().during(START_S, lambda: node.running == 0)
        total_s = time.process_time() - ended_s + started_s - before_s
        answer = await node.exchange(_orders(number, wait_s=0.0))
        await node.close(30.0)
    return Crowd(
        trials=trials,
        mb_per_trial=used_mb / trials,
        timers_per_trial_s=len(timers) / trials / waited_s,
        cpu_share=cpu_s / waited_s,
        lag_p50_ms=share(waiting, 0.5),
        lag_p99_ms=share(waiting, 0.99),
        idle_lag_p99_ms=share(idle, 0.99),
        ending_lag_p99_ms=share(ending, 0.99),
        cpu_s_per_trial=total_s / trials,
        puts_per_attempt=len(puts) / (trials + 1),
        passed=sum(each.verdict == "pass" for each in answer.ended),
    )


async def _leased(node: Node, cell: CellSpec, indexes: range, number: int) -> tuple[int, Progress]:
    """Gives the node leases and waits until each of its trials drives, and its agent has begun."""
    leases = tuple(
        Lease(
            attempt=attempt_id("crowd", "c", "t", index),
            index=index,
            cell=cell.cell,
            epoch=Epoch(1, index + 1),
            term_s=TERM_S,
        )
        for index in indexes
    )
    answer = await node.exchange(_orders(number, leases, {cell.cell: cell}))
    give_up = time.monotonic() + START_S
    while not all(each.phase == "drive" for each in answer.running) or not answer.running:
        assert not answer.ended, answer.ended[0]
        assert time.monotonic() < give_up, "the trials did not start"
        answer = await node.exchange(_orders(answer.number, wait_s=0.2))
    await asyncio.sleep(2.0)  # for what the last ones still do after they have begun to drive
    return answer.number, answer


def _orders(
    received: int,
    leases: tuple[Lease, ...] = (),
    cells: dict[str, CellSpec] | None = None,
    wait_s: float = 0.0,
) -> Orders:
    return Orders(generation=1, received=received, leases=leases, cells=cells or {}, wait_s=wait_s)


async def _node(
    folder: Path,
    tell: Callable[[dict[str, Any]], None],
    trials: int,
    heard: Heard,
    owned: AsyncExitStack,
) -> tuple[Node, CellSpec]:
    """A node with a place for every trial, and the cell of all of them."""
    task_folder, kit = folder / "small", folder / "kit"
    write_task(task_folder, "")
    kit.mkdir()
    (kit / "__init__.py").write_text("")
    store = open_store(f"file://{folder}/store")
    task = make_task(task_folder, kit, 300.0, 60.0)
    store.put(archive_key(task.digest), pack(task_folder, kit))
    condition = make_condition()
    endpoints = {"test-model": Endpoint(provider="scripted", base_url="http://127.0.0.1:9/v1")}
    sweep = SweepSpec(
        sweep="crowd",
        store=store.url,
        agent="reference",
        relay="embedded",
        network="sealed",
        base_image=None,
        seed=1,
        limits=Limits(),
        endpoints=endpoints,
    )
    gateway = await owned.enter_async_context(Gateway(endpoints, {}))
    engine: Any = WaitingEngine(tell)
    bundle: Any = NoBundle()
    (folder / "s").mkdir()
    seen = ObservedStore(store, heard)
    tools = Tools(engine, gateway, seen, "crowd-node", folder / "work", folder / "s")
    cell = CellSpec(
        cell=cell_id(condition.digest, task.digest),
        task=task,
        condition=condition,
        prompts={sha256_hex(PERSONA.encode()): PERSONA},
    )
    return Node("n1", "crowd", trials + 1, make_trial_function(sweep, tools, bundle)), cell


def crowd(trials: int, window_s: float) -> Crowd:
    """Measures in a scratch folder of its own."""
    with tempfile.TemporaryDirectory(prefix="ac-", dir="/tmp") as folder:
        return asyncio.run(measure(trials, window_s, Path(folder)))


def main() -> None:
    """Measures and writes one JSON object."""
    trials = int(sys.argv[1]) if len(sys.argv) > 1 else 300
    window_s = float(sys.argv[2]) if len(sys.argv) > 2 else 20.0
    sys.stdout.write(json.dumps(asdict(crowd(trials, window_s))) + "\n")


if __name__ == "__main__":
    main()
