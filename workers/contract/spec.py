"""What the driver gives a node: the sweep, its cells, and leases."""

from __future__ import annotations

from typing import Annotated, Literal, NamedTuple

from pydantic import Field

from workers.contract.base import Strict, sha256_hex
from workers.contract.condition import Condition
from workers.contract.endpoint import Endpoint
from workers.contract.task import Task


class Limits(Strict):
    """Bounds of a sweep; all have defaults and stand in the lock."""

    max_tries: Annotated[int, Field(ge=1, le=20)] = 3
    """Tries of one attempt, the first included."""
    poison: Annotated[int, Field(ge=1)] = 5
    """Invalid tries of a cell in a row after which the cell is left alone."""
    cpu_overcommit: Annotated[float, Field(gt=0)] = 4.0
    memory_overcommit: Annotated[float, Field(gt=0)] = 2.0
    lease_term_s: Annotated[float, Field(gt=0)] = 60.0
    build_s: Annotated[float, Field(gt=0)] = 900.0
    provision_s: Annotated[float, Field(gt=0)] = 60.0
    launch_s: Annotated[float, Field(gt=0)] = 120.0
    freeze_s: Annotated[float, Field(gt=0)] = 20.0
    collect_s: Annotated[float, Field(gt=0)] = 60.0
    seal_s: Annotated[float, Field(gt=0)] = 120.0
    teardown_s: Annotated[float, Field(gt=0)] = 30.0
    silence_s: Annotated[float, Field(gt=0)] = 120.0
    disk_free_mb: Annotated[int, Field(ge=0)] = 2048
    log_bytes: Annotated[int, Field(gt=0)] = 4 * 1024 * 1024
    """Kept of each agent log; head and tail."""


class SweepSpec(Strict):
    """What every trial of a sweep shares."""

    sweep: str
    """The sweep's id: its name and UTC start."""
    store: str
    """URL of the store, ``file://`` or ``s3://``."""
    agent: Literal["reference"]
    relay: Literal["embedded"]
    network: Literal["declared", "sealed"]
    """``sealed``: no container has a network; ``declared``: what its task asks for."""
    base_image: str | None
    """Given to task builds as ``BASE_IMAGE``; null: what their Dockerfiles name."""
    seed: int
    limits: Limits
    endpoints: dict[str, Endpoint]


class CellSpec(Strict):
    """One task under one condition."""

    cell: str
    """``cell_id(condition, task)``."""
    task: Task
    condition: Condition
    prompts: dict[str, str]
    """The text of every prompt of the roster by its SHA-256."""


class Epoch(NamedTuple):
    """The fencing token of a lease, and the number of its try."""

    generation: int
    """Of the driver; a node refuses a lower one than it has seen."""
    counter: int
    """The try within that driver's life, from 1."""

    def __str__(self) -> str:
        """``<generation>-<counter>``: the name of the try's folder."""
        return f"{self.generation}-{self.counter}"

    @classmethod
    def parse(cls, text: str) -> Epoch:
        """Reads what ``str`` wrote.

        Raises:
            ValueError: the text is not ``<generation>-<counter>``.
        """
        generation, _, counter = text.partition("-")
        return cls(int(generation), int(counter))


class Lease(Strict):
    """The right of one node to run one try of one attempt, until its term ends."""

    attempt: str
    index: Annotated[int, Field(ge=0)]
    """Which of the cell's k attempts."""
    cell: str
    epoch: Epoch
    term_s: float
    """Seconds from receipt (or last renewal) on the node's monotonic clock."""


def cell_id(condition_digest: str, task_digest: str) -> str:
    """The id of a cell: 16 hex digits of a hash of both identities."""
    return sha256_hex(f"{condition_digest}\0{task_digest}".encode())[:16]


def attempt_id(sweep: str, condition_digest: str, task_digest: str, index: int) -> str:
    """The id of an attempt: 32 hex digits of a hash of what makes it unique."""
    text = f"{sweep}\0{condition_digest}\0{task_digest}\0{index}"
    return sha256_hex(text.encode())[:32]
