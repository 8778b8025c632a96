"""Nodes in processes of their own, under the real driver; each can be killed or frozen."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from scheduler.cluster import ClusterOptions
from scheduler.driver import OpenNodes
from scheduler.errors import NodeLostError
from workers.actor import Opened, OpenOptions
from workers.contract.report import Orders, Progress
from workers.contract.spec import SweepSpec

ROOT = Path(__file__).resolve().parents[2]
OPEN_S = 120.0
CLOSE_S = 60.0
LINE_BYTES = 64 * 1024 * 1024


class ProcessNode:
    """A node actor in a process, as dispatch sees it (``scheduler.node_source.NodeHandle``)."""

    adopted = False
    metrics = ""

    def __init__(self, name: str, process: asyncio.subprocess.Process) -> None:
        self.name = name
        self.process = process
        self._number = 0
        self._answers: dict[int, asyncio.Future[Any]] = {}
        self._reader = asyncio.create_task(self._read())

    @classmethod
    async def start(cls, name: str) -> ProcessNode:
        """Starts the process."""
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "tests.classification.node_process"),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            cwd=ROOT,
            limit=LINE_BYTES,
        )
        return cls(name, process)

    async def open(self, spec: SweepSpec, workspace: Path, slots: int = 1) -> None:
        """Makes it ready for trials."""
        options = OpenOptions(
            node=self.name, workspace=str(workspace), n_concurrent=slots, task_memory_mb=256
        )
        told = await asyncio.wait_for(self.call("open", spec.to_json(), options.to_json()), OPEN_S)
        opened = Opened.from_json(told, "opened")
        assert not opened.error, opened.error

    async def exchange(self, orders: Orders) -> Progress:
        """Orders in, progress out."""
        return Progress.from_json(await self.call("exchange", orders.to_json()), "progress")

    async def call(self, method: str, *arguments: Any) -> Any:
        """One call of the actor's.

        Raises:
            NodeLostError: its process is gone.
        """
        self._number += 1
        number = self._number
        answer = self._answers[number] = asyncio.get_running_loop().create_future()
        assert self.process.stdin is not None
        try:
            if self._reader.done():
                raise NodeLostError(self.name, "its process is gone")
            self.process.stdin.write(f"{json.dumps([number, method, arguments])}\n".encode())
            return await answer
        finally:
            self._answers.pop(number, None)

    def kill(self) -> None:
        """Ends it as a crash would."""
        self.process.kill()

    def freeze(self) -> None:
        """Stops it in mid air."""
        self.process.send_signal(signal.SIGSTOP)

    async def end(self) -> None:
        """Ends it well if it lives."""
        if self.process.returncode is None:
            self.process.send_signal(signal.SIGCONT)
            assert self.process.stdin is not None
            self.process.stdin.close()
        try:
            await asyncio.wait_for(self.process.wait(), CLOSE_S)
        except TimeoutError:
            self.process.kill()
            await self.process.wait()
        await asyncio.gather(self._reader, return_exceptions=True)

    async def _read(self) -> None:
        assert self.process.stdout is not None
        while line := await self.process.stdout.readline():
            number, value = json.loads(line)
            answer = self._answers.get(number)
            if answer is not None and not answer.done():
                answer.set_result(value)
        for answer in self._answers.values():
            if not answer.done():
                answer.set_exception(NodeLostError(self.name, "its process is gone"))


class ProcessNodes:
    """One node, and another as soon as that one is no more to be had."""

    untidy_nodes: Sequence[str] = ()

    def __init__(self, spec: SweepSpec, workspace: Path) -> None:
        self._spec = spec
        self._workspace = workspace
        self.started: list[ProcessNode] = []
        self.wanted = 1

    async def find(self) -> Sequence[ProcessNode]:
        """The nodes that were started since the last call."""
        if len(self.started) >= self.wanted:
            return ()
        node = await ProcessNode.start(f"node-{len(self.started)}-{os.getpid()}")
        self.started.append(node)
        await node.open(self._spec, self._workspace)
        return (node,)

    def let_be(self) -> None:
        """No driver adopts them."""


def opener(workspace: Path, tell: Callable[[ProcessNodes], None]) -> OpenNodes:
    """What ``drive`` opens nodes with; they share a workspace, and ``tell`` is given them."""

    @asynccontextmanager
    async def open_nodes(spec: SweepSpec, _: ClusterOptions) -> AsyncIterator[ProcessNodes]:
        nodes = ProcessNodes(spec, workspace)
        tell(nodes)
        try:
            yield nodes
        finally:
            for node in nodes.started:
                await node.end()

    return open_nodes
