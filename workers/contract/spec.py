"""What the driver gives a node: the sweep, its cells, and leases."""

from __future__ import annotations

from typing import Annotated, Literal, NamedTuple, Self

from pydantic import Field, model_validator

from workers.contract.base import Strict, sha256_hex
from workers.contract.buzz import BuzzStack
from workers.contract.condition import Condition
from workers.contract.endpoint import Endpoint
from workers.contract.relay import RelayKind
from workers.contract.task import Task

CanaryKind = Literal["oracle", "nop", "solver"]
"""A canary's agent: one whose result is known, so that any other says something of the harness."""


AgentKind = Literal["reference", "buzz", "oracle", "nop"]
"""Who works on the tasks of a sweep; ``buzz`` is the production stack."""
Played = Literal["oracle", "nop"]
"""An agent without a model and a relay: a task's own solution, or nobody."""
PLAYED: tuple[Played, ...] = ("oracle", "nop")


class TimeoutMultipliers(Strict):
    """What a sweep multiplies its tasks' time limits with, by Harbor's names."""

    agent: Annotated[float, Field(gt=0)] = 1.0
    verifier: Annotated[float, Field(gt=0)] = 1.0
    agent_setup: Annotated[float, Field(gt=0)] = 1.0
    """Of ``limits.launch_s``, which no task says."""
    environment_build: Annotated[float, Field(gt=0)] = 1.0


class Limits(Strict):
    """Bounds of a sweep; all have defaults and stand in the lock."""

    max_tries: Annotated[int, Field(ge=1, le=20)] = 3
    """Tries of one attempt, the first included."""
    poison: Annotated[int, Field(ge=1)] = 5
    """Invalid tries of a cell in a row after which the cell is left alone."""
    node_breaker: Annotated[int, Field(ge=1)] = 5
    """Invalid tries of harness blame within ``node_breaker_s`` after which a node gets only
    probes. At most two of one cell count (so from 3 on, no cell does it alone), and while several
    conditions have attempts left, two of them must be among the failures."""
    node_breaker_s: Annotated[float, Field(gt=0)] = 600.0
    node_probe_s: Annotated[float, Field(gt=0)] = 60.0
    """From the opening of a node's breaker, and from each probe that did not close it, to the
    next probe."""
    node_give_up_s: Annotated[float, Field(gt=0)] = 1800.0
    """With the breakers of all nodes open for so long the sweep ends; it can be resumed."""
    endpoint_breaker: Annotated[int, Field(ge=1)] = 10
    """Consecutive tries that an endpoint's provider is to blame for, after which the cells that
    use it wait."""
    endpoint_probe_s: Annotated[float, Field(gt=0)] = 60.0
    """As ``node_probe_s``, of an endpoint."""
    endpoint_give_up_s: Annotated[float, Field(gt=0)] = 1800.0
    """With nothing but attempts that have waited for an endpoint for so long the sweep ends; it
    can be resumed."""
    cpu_overcommit: Annotated[float, Field(gt=0)] = 4.0
    memory_overcommit: Annotated[float, Field(gt=0)] = 2.0
    lease_term_s: Annotated[float, Field(gt=0)] = 60.0
    orphan_s: Annotated[float, Field(gt=0)] = 3600.0
    """After its last trial and its driver's last word, until a node on a cluster ends itself."""
    build_s: Annotated[float, Field(gt=0)] = 900.0
    provision_s: Annotated[float, Field(gt=0)] = 60.0
    launch_s: Annotated[float, Field(gt=0)] = 120.0
    freeze_s: Annotated[float, Field(gt=0)] = 20.0
    collect_s: Annotated[float, Field(gt=0)] = 60.0
    seal_s: Annotated[float, Field(gt=0)] = 120.0
    teardown_s: Annotated[float, Field(gt=0)] = 30.0
    relay_lost_s: Annotated[float, Field(gt=0)] = 30.0
    """Without the connection to a deployment's relay for so long a trial ends."""
    silence_s: Annotated[float, Field(gt=0)] = 120.0
    container_starts_per_s: Annotated[float, Field(gt=0)] | None = None
    """Containers that a node starts a second at most; null: as many as its engine bears with two
    for each of its cores in hand."""
    reap_every_s: Annotated[float, Field(gt=0)] = 300.0
    """Between two rounds of a node's reaper."""
    disk_free_mb: Annotated[int, Field(ge=0)] = 2048
    log_bytes: Annotated[int, Field(gt=0)] = 4 * 1024 * 1024
    """Kept of each agent log; head and tail."""


class SweepSpec(Strict):
    """What every trial of a sweep shares."""

    sweep: str
    """The sweep's id: its name and UTC start."""
    store: str
    """URL of the store, ``file://`` or ``s3://``."""
    agent: AgentKind
    relay: RelayKind
    network: Literal["declared", "sealed"]
    """``sealed``: no container has a network; ``declared``: what its task asks for."""
    base_image: str | None
    """Given to task builds as ``BASE_IMAGE``; null: what their Dockerfiles name."""
    seed: int
    limits: Limits
    endpoints: dict[str, Endpoint]
    pass_threshold: Annotated[float, Field(gt=0, le=1)] = 1.0
    """The least reward that passes, of tasks graded by their container's state."""
    timeout_multipliers: TimeoutMultipliers = TimeoutMultipliers()
    buzz: BuzzStack | None = None
    """Of agent ``buzz``, and of no other."""

    @model_validator(mode="after")
    def _has_its_programs(self) -> Self:
        if (self.agent == "buzz") != (self.buzz is not None):
            raise ValueError("buzz belongs to agent 'buzz', and to no other")
        return self


class CellSpec(Strict):
    """One task under one condition."""

    cell: str
    """``cell_id(condition, task)``."""
    task: Task
    condition: Condition
    prompts: dict[str, str]
    """The text of every prompt of the roster by its SHA-256."""
    canary: CanaryKind | None = None
    """Of a canary; it counts in no score and against no budget of a model."""

    def played(self, agent: AgentKind) -> Played | None:
        """Who plays it in place of a model, under a sweep's agent; None: nobody does.

        A silent canary of a Buzz-native task has a model, since its evidence is a relay's.
        """
        if self.canary == "oracle" or (self.canary == "nop" and self.task.fixture is None):
            return self.canary
        if self.canary is None and (agent == "oracle" or agent == "nop"):
            return agent
        return None


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
    probe: bool = False
    """Given to see whether an endpoint is back; the try's record says so too."""


def cell_id(condition_digest: str, task_digest: str) -> str:
    """The id of a cell: 16 hex digits of a hash of both identities."""
    return sha256_hex(f"{condition_digest}\0{task_digest}".encode())[:16]


def attempt_id(sweep: str, condition_digest: str, task_digest: str, index: int) -> str:
    """The id of an attempt: 32 hex digits of a hash of what makes it unique."""
    text = f"{sweep}\0{condition_digest}\0{task_digest}\0{index}"
    return sha256_hex(text.encode())[:32]
