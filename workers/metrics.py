"""What Prometheus sees of a node: its trials, containers, relays, models and store."""

from __future__ import annotations

import asyncio
import platform
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import metadata
from pathlib import Path
from typing import Protocol

from workers.config import MetricsAddress
from workers.exposition import Exposition, Metric, served
from workers.storage.interface import Store, StoreError

OP_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
BUILD_SECONDS = (0.5, 1, 5, 15, 30, 60, 120, 300, 900)
MODEL_SECONDS = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 40, 80, 160, 320)
OTHER = "other"
"""Label of what is none of a known few: an endless number of values would be endless series."""

TRIALS_RUNNING = Metric("trials_running", "gauge", "Trials that run on the node.")
SLOTS = Metric("slots", "gauge", "Trials that the node runs at once at most.")
CONTAINERS = Metric("containers", "gauge", "Containers that the node has started and not removed.")
CONTAINER_OPS = Metric(
    "container_op_seconds",
    "histogram",
    "Time of one request to the container engine.",
    "seconds",
    ("op",),
    OP_SECONDS,
)
IMAGE_BUILDS = Metric(
    "image_build_seconds",
    "histogram",
    "Time of building or pulling one image.",
    "seconds",
    (),
    BUILD_SECONDS,
)
RELAY_EVENTS = Metric(
    "relay_events",
    "counter",
    "Events submitted to the trials' relays, by kind and whether they were accepted.",
    labels=("kind", "accepted"),
)
RELAY_CONNECTIONS = Metric("relay_connections", "gauge", "Open connections to the trials' relays.")
MODEL_REQUESTS = Metric(
    "model_requests",
    "counter",
    "Requests of agents to models, by how they ended.",
    labels=("endpoint", "result"),
)
MODEL_LATENCY = Metric(
    "model_latency_seconds",
    "histogram",
    "Time of a forwarded request from its arrival to its end.",
    "seconds",
    ("endpoint",),
    MODEL_SECONDS,
)
MODEL_TOKENS = Metric(
    "model_tokens",
    "counter",
    "Tokens as the provider reports them; cached ones are part of the input.",
    labels=("endpoint", "kind"),
)
MODEL_COST = Metric(
    "model_cost_usd",
    "counter",
    "Cost by the conditions' prices, over requests whose usage is known.",
    "usd",
    ("endpoint",),
)
MODEL_PERMITS = Metric(
    "model_permits",
    "gauge",
    "Requests that the node may have under way at an endpoint.",
    labels=("endpoint",),
)
STORE_OPS = Metric(
    "store_op_seconds",
    "histogram",
    "Time of one call to the object store.",
    "seconds",
    ("op", "result"),
    OP_SECONDS,
)
REAPED = Metric("reaped", "counter", "Things of dead runs that were removed.", labels=("kind",))
DISK_FREE = Metric("disk_free_bytes", "gauge", "Free space where the node's trials write.", "bytes")
BUILD_INFO = Metric(
    "build_info", "gauge", "Always 1; its labels say what runs.", labels=("version", "python")
)

NODE_METRICS = (
    TRIALS_RUNNING,
    SLOTS,
    CONTAINERS,
    CONTAINER_OPS,
    IMAGE_BUILDS,
    RELAY_EVENTS,
    RELAY_CONNECTIONS,
    MODEL_REQUESTS,
    MODEL_LATENCY,
    MODEL_TOKENS,
    MODEL_COST,
    MODEL_PERMITS,
    STORE_OPS,
    REAPED,
    DISK_FREE,
    BUILD_INFO,
)

REAPED_KINDS = ("containers", "volumes", "networks", "images", "bundles", "folders")
TOKEN_KINDS = ("input", "cached_input", "output")
EVERYWHERE = frozenset({"0.0.0.0", "::"})
"""Addresses that nobody can connect to: all interfaces are meant."""


KEEP_S = 10.0
"""For the store to take the last values."""


class Slotted(Protocol):
    """What is shown of a node."""

    slots: int

    @property
    def running(self) -> int:
        """Trials that run."""
        ...


class Request(Protocol):
    """What is counted of a request to a model; the ledger's line has it."""

    @property
    def endpoint(self) -> str | None:
        """Null: it was refused before one was known."""
        ...

    @property
    def result(self) -> str:
        """How it ended."""
        ...

    @property
    def seconds(self) -> float:
        """From its arrival to its end."""
        ...

    @property
    def forwarded(self) -> bool:
        """Whether it was sent to the provider."""
        ...

    @property
    def input_tokens(self) -> int | None:
        """Cached ones included; null: not reported."""
        ...

    @property
    def cached_input_tokens(self) -> int | None:
        """Null: not reported."""
        ...

    @property
    def output_tokens(self) -> int | None:
        """Null: not reported."""
        ...

    @property
    def cost_usd(self) -> float | None:
        """Null: unknown."""
        ...


class NodeMetrics:
    """The metrics of one node; its methods are handed to the tools of a trial as their ears."""

    def __init__(self, endpoints: Sequence[str], results: Sequence[str]) -> None:
        """Counters start at 0 for what is known beforehand.

        Args:
            endpoints: names that the sweep uses.
            results: every way in which a request to a model may end.
        """
        self.exposition = Exposition(NODE_METRICS)
        shown = self.exposition
        shown.set(BUILD_INFO, 1, (_version(), platform.python_version()))
        for endpoint in endpoints:
            shown.born(MODEL_COST, (endpoint,))
            shown.born(MODEL_LATENCY, (endpoint,))
            for result in results:
                shown.born(MODEL_REQUESTS, (endpoint, result))
            for kind in TOKEN_KINDS:
                shown.born(MODEL_TOKENS, (endpoint, kind))
        for kind in REAPED_KINDS:
            shown.born(REAPED, (kind,))

    def container_op(self, op: str, seconds: float) -> None:
        """The container engine was asked for something."""
        self.exposition.observe(CONTAINER_OPS, seconds, (op,))

    def image_built(self, seconds: float) -> None:
        """An image was built or pulled."""
        self.exposition.observe(IMAGE_BUILDS, seconds)

    def relay_event(self, kind: int | None, accepted: bool) -> None:
        """An event was submitted to a relay; a kind that no relay knows is ``other``."""
        labels = (OTHER if kind is None else str(kind), "true" if accepted else "false")
        self.exposition.add(RELAY_EVENTS, labels=labels)

    def model_request(self, request: Request) -> None:
        """A request to a model ended; what the provider did not say counts as nothing."""
        shown, endpoint = self.exposition, request.endpoint
        shown.add(MODEL_REQUESTS, labels=(endpoint or OTHER, request.result))
        if endpoint is None or not request.forwarded:
            return
        shown.observe(MODEL_LATENCY, request.seconds, (endpoint,))
        counts = (request.input_tokens, request.cached_input_tokens, request.output_tokens)
        for kind, count in zip(TOKEN_KINDS, counts, strict=True):
            shown.add(MODEL_TOKENS, count or 0, (endpoint, kind))
        shown.add(MODEL_COST, request.cost_usd or 0.0, (endpoint,))

    def store_op(self, op: str, result: str, seconds: float) -> None:
        """The object store was asked for something."""
        self.exposition.observe(STORE_OPS, seconds, (op, result))

    def reaped(self, kind: str, count: int) -> None:
        """Things of dead runs were removed."""
        self.exposition.add(REAPED, count, (kind,))

    def watch(self, node: Callable[[], Slotted | None], folder: Path) -> None:
        """Shows what the node runs, and the room that the folder's disk has, while it has any."""

        def of(read: Callable[[Slotted], int]) -> Callable[[], float]:
            def now() -> float:
                there = node()
                return 0 if there is None else read(there)

            return now

        def free() -> float:
            try:
                return shutil.disk_usage(folder).free
            except OSError:
                return float("nan")

        self.exposition.live(TRIALS_RUNNING, of(lambda there: there.running))
        self.exposition.live(SLOTS, of(lambda there: there.slots))
        self.exposition.live(DISK_FREE, free)

    async def keep(self, store: Store, sweep: str, node: str) -> None:
        """Puts the last values beside the report; a store that is away does without them."""
        with suppress(StoreError, TimeoutError):
            async with asyncio.timeout(KEEP_S):
                key = f"sweeps/{sweep}/report/metrics-{node}.txt"
                await asyncio.to_thread(store.put, key, self.exposition.text())

    @contextmanager
    def served(self, where: MetricsAddress | None) -> Iterator[str]:
        """Serves them while it is open.

        Yields:
            ``host:port`` at which Prometheus finds them; empty: they are not served.

        Raises:
            MetricsAddressError: the address is none of this machine's, or no port is free.
        """
        if where is None:
            yield ""
            return
        with served(self.exposition, where.port, where.address) as url:
            port = url.removesuffix("/metrics").rpartition(":")[2]
            host = platform.node() if where.address in EVERYWHERE else where.address
            yield f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _version() -> str:
    try:
        return metadata.version("apiary")
    except metadata.PackageNotFoundError:
        return "unknown"
