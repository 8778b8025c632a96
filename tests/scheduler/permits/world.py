"""Three nodes with their agents, a driver's control, and the time between them, simulated.

The control, the nodes and their waiting lines are the real ones; only agents, network and
provider are not.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from scheduler.permits.control import ProviderControl
from tests.scheduler.permits.providers import MINUTE_S, Provider
from workers.contract.endpoint import Endpoint
from workers.contract.report import Orders
from workers.contract.spec import CellSpec, Lease
from workers.contract.trial import Control, TrialEnd
from workers.node import Node
from workers.permits.node import NodePermits

NETWORK_S = 0.02
NAMES = ("n1", "n2", "n3")


def endpoint(**fields: object) -> Endpoint:
    return Endpoint.model_validate(
        {"provider": "openai", "base_url": "http://p", "api_key_env": "K", **fields}
    )


@dataclass(frozen=True)
class Habits:
    """What agents do: seconds and tokens, all exponential but the input."""

    think_s: float = 4.0
    input_tokens: int = 2000
    output_tokens: int = 200
    token_s: float = 0.012
    first_s: float = 0.6
    """Until the answer begins."""
    given_up: bool = False


@dataclass
class World:
    """A cluster that asks providers, by endpoint."""

    providers: Mapping[str, Provider]
    endpoints: Mapping[str, Endpoint]
    agents: int = 200
    habits: Habits = field(default_factory=Habits)
    seed: int = 1
    waits: list[float] = field(default_factory=list)
    by_agent: Counter[str] = field(default_factory=Counter)
    unsent: Callable[[str], bool] = lambda _: False
    """Whether a node's network is broken."""

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)
        self.loop = asyncio.get_running_loop()
        self.control = ProviderControl(self.endpoints, self.loop.time)
        self.nodes: dict[str, tuple[Node, NodePermits]] = {}
        for name in NAMES:
            permits = NodePermits()
            permits.know(self.endpoints)
            node = Node(name, "s", 1000, _no_trial, permits=permits, clock=self.loop.time)
            self.nodes[name] = (node, permits)

    async def run(self, seconds: float) -> None:
        """Lets it go on for so long."""
        names = sorted(self.endpoints)
        tasks = [asyncio.create_task(self.drive(name)) for name in NAMES]
        await asyncio.sleep(1.0)
        for number in range(self.agents):
            node, name = NAMES[number % len(NAMES)], names[number % len(names)]
            tasks.append(asyncio.create_task(self.agent(node, name, f"a{number}")))
        await asyncio.sleep(seconds)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def drive(self, name: str) -> None:
        """The driver's conversation with a node."""
        node, _ = self.nodes[name]
        while True:
            orders = Orders(
                generation=1,
                permits=self.control.lend(name),
                wait_s=self.control.poll_s(1.0),
            )
            await asyncio.sleep(NETWORK_S)
            progress = await node.exchange(Orders.from_json(orders.to_json(), "orders"))
            await asyncio.sleep(NETWORK_S)
            self.control.heard(name, progress)

    async def agent(self, node: str, name: str, agent: str) -> None:
        """Asks, thinks, asks again; a refused request is repeated as clients do."""
        draw, habits = self.random, self.habits
        await asyncio.sleep(draw.uniform(0, habits.think_s))
        while True:
            given = int(habits.input_tokens * draw.uniform(0.5, 1.5))
            made = 1 + int(draw.expovariate(1 / habits.output_tokens))
            pause = 0.5
            while await self.ask(node, name, agent, given, made) != 200:
                await asyncio.sleep(pause * draw.uniform(0.8, 1.2))
                pause = min(8.0, 2 * pause)
            await asyncio.sleep(draw.expovariate(1 / habits.think_s))

    async def ask(self, node: str, name: str, agent: str, given: int, made: int) -> int:
        """One request through a node; its status, 0 where nothing came back."""
        permits = self.nodes[node][1]
        asked = self.loop.time()
        async with permits.admit(name, agent, given, 65536) as admission:
            self.waits.append(self.loop.time() - asked)
            if self.unsent(node):
                await asyncio.sleep(0.05)
                admission.answered(None, [])
                return 0
            seconds = self.habits.first_s + made * self.habits.token_s
            status, headers = await self.providers[name].ask(given, made, seconds)
            admission.answered(status, headers)
            if status == 200:
                self.by_agent[agent] += 1
                admission.used(given, made)
            return status


async def foreign(provider: Provider, per_minute: float, seed: int = 7) -> None:
    """Requests of somebody else on the same account."""
    draw = random.Random(seed)
    running: set[asyncio.Task[object]] = set()
    while True:
        await asyncio.sleep(draw.expovariate(per_minute / MINUTE_S))
        task: asyncio.Task[object] = asyncio.create_task(provider.ask(2000, 200, 3.0, foreign=True))
        running.add(task)
        task.add_done_callback(running.discard)


async def _no_trial(cell: CellSpec, lease: Lease, control: Control) -> TrialEnd:
    raise AssertionError("no trial is leased here")


async def ended(task: asyncio.Task[None]) -> None:
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
