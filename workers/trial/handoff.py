"""What each phase gives the next: frozen values, so that the type checker keeps their order.

Whoever holds a ``Launched`` has a running container; there is no trial object with optional
fields. Resources are on the trial's exit stack and go in reverse order of acquisition.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from workers.container.interface import Container, Engine, ExitState, Mount, Process
from workers.contract.condition import RosterEntry
from workers.contract.evidence import DirectoryRow, Evidence, ScriptedEvent
from workers.contract.outcome import Cause
from workers.contract.spec import CellSpec, Lease, SweepSpec
from workers.contract.task import Freeze
from workers.gateway import Gateway, GatewayTrial, LedgerLine
from workers.nostr.attestation import Attestation
from workers.nostr.event import Event
from workers.nostr.keys import Keypair
from workers.relay import RelayClient, TrialRelay
from workers.showing import Showing
from workers.storage.interface import Store
from workers.trial.files import TrialFolder
from workers.trial.log_watch import LogWatch
from workers.trial.secrets import Secrets

LIB_VARIABLE = "PYTHONPATH"
BYTECODE_VARIABLE = "PYTHONDONTWRITEBYTECODE"
AGENTS_VARIABLE = "APIARY_AGENTS"
LIMIT_VARIABLE = "APIARY_TIME_LIMIT_S"
STAY_VARIABLE = "APIARY_STAYS"
OWN_VARIABLES = (
    LIB_VARIABLE,
    BYTECODE_VARIABLE,
    AGENTS_VARIABLE,
    LIMIT_VARIABLE,
    STAY_VARIABLE,
)
"""What the agents' container is started with, and no test may see: keys are among it."""
GATEWAY_PORT = 3601
EMBEDDED_HOST = "localhost:3600"
"""The authority of a trial's own relay, as in Buzz's benchmark."""


@dataclass(frozen=True)
class Tools:
    """What the trials of a node share."""

    engine: Engine
    gateway: Gateway
    store: Store
    node: str
    workspace: Path
    """Task folders by digest, and one folder for each running trial."""
    sockets: Path
    """A folder with a short path: a Unix socket's path holds 107 bytes."""
    clock_skew_s: Callable[[], float | None] = lambda: None
    """How far the node's wall clock is ahead of the driver's, for the record."""
    relay_event: Callable[[int | None, bool], None] = lambda kind, accepted: None
    """Hears of every event that is submitted to a trial's relay."""
    relays: set[TrialRelay] = field(default_factory=set)
    """Those of the running trials."""
    owner: Keypair | None = None
    """Of a deployment's relay; null where every trial has its own."""
    logs: LogWatch = field(default_factory=LogWatch)
    """Tells when agents write."""
    showing: Showing | None = None
    """Where running trials can be followed; null: nowhere."""


@dataclass(frozen=True)
class Job:
    """What one trial is asked to do."""

    sweep: SweepSpec
    cell: CellSpec
    lease: Lease
    folder: TrialFolder
    secrets: Secrets

    @property
    def try_(self) -> str:
        """The try's folder name."""
        return str(self.lease.epoch)

    @property
    def agent_timeout_s(self) -> float:
        """How long the agents may take: the task's limit, capped by the condition's."""
        return min(
            self.cell.task.config.agent.timeout_sec,
            float(self.cell.condition.trial_budget.timeout_seconds),
        )

    @property
    def launch_s(self) -> float:
        """How long container and agents may take to start."""
        return self.sweep.limits.launch_s * self.sweep.timeout_multipliers.agent_setup

    @property
    def build_s(self) -> float:
        """How long the task's image may take: its own word, within the sweep's bound."""
        multiplier = self.sweep.timeout_multipliers.environment_build
        asked = self.cell.task.config.environment.build_timeout_sec
        return min(self.sweep.limits.build_s * max(1.0, multiplier), asked or float("inf"))

    @property
    def storage_bytes(self) -> int:
        """What the agents may store: the condition's word, else the task's."""
        override = self.cell.condition.environment
        megabytes = (override and override.override_storage_mb) or (
            self.cell.task.config.environment.storage_mb
        )
        return megabytes * 1024 * 1024

    @property
    def labels(self) -> dict[str, str]:
        """The labels of every container of this try, less the one that expires it."""
        return {
            "apiary.sweep": self.sweep.sweep,
            "apiary.attempt": self.lease.attempt,
            "apiary.try": self.try_,
            "apiary.epoch": self.try_,
        }


@dataclass(frozen=True)
class Prepared:
    """Image and files are on the node."""

    image: str
    """Docker's image id."""
    tests: Path
    """The task's tests with the verifier kit beside them."""
    agent_mounts: tuple[Mount, ...]
    """Empty where no model's agent is to run."""
    pulled: str | None = None
    """``repository@digest`` of an image that was pulled."""


@dataclass(frozen=True)
class Agent:
    """A roster member with its keys."""

    id: str
    entry: RosterEntry
    keypair: Keypair
    attestation: Attestation

    @property
    def is_orchestrator(self) -> bool:
        """Whether the task message is addressed to it."""
        return self.entry.kind == "orchestrator"


@dataclass(frozen=True)
class Member:
    """An identity that is no agent: the user, or one of the directory."""

    name: str
    keypair: Keypair
    attestation: Attestation


@dataclass(frozen=True)
class Provisioned:
    """Relay, channel, identities and gateway token stand ready."""

    relay: TrialRelay
    gateway: GatewayTrial
    opened_s: float
    """Monotonic clock when the gateway opened the trial: the zero of its ledger."""
    channel_id: str
    user: Member
    user_client: RelayClient
    agents: tuple[Agent, ...]
    """The orchestrator first."""
    directory: tuple[DirectoryRow, ...]
    actors: Mapping[str, Member]
    """Directory identities by identity id."""

    @property
    def orchestrator(self) -> Agent:
        """The agent that the task is given to."""
        return self.agents[0]


@dataclass(frozen=True)
class Launched:
    """The container runs and every agent is subscribed to the channel."""

    container: Container
    first: int = 0
    """The pid of the container's first process, where it is needed for the freeze."""
    agent_pids: frozenset[int] = frozenset()


class Ending(enum.StrEnum):
    """How the drive ended."""

    TURN_ENDED = "turn_ended"
    DONE = "done"
    """A team's orchestrator said ``DONE:``."""
    STOPPED = "stopped"
    """Refusal, token limit or round limit."""
    TURN_FAILED = "turn_failed"
    """The turn ended in an error of the model's endpoint."""
    STORAGE_FULL = "storage_full"
    """The agents wrote more than their task may store: logs, or by far too many files."""
    TIMEOUT = "timeout"
    AGENT_EXITED = "agent_exited"
    CONTAINER_ENDED = "container_ended"


@dataclass(frozen=True)
class Driven:
    """The agents had their say."""

    task_event: Event
    scripted: tuple[ScriptedEvent, ...]
    ending: Ending
    detail: str
    completion_message_id: str | None
    started_s: float
    """Of the task message, on the ledger's clock."""
    seconds: float
    silences: tuple[float, ...]
    layer_bytes: int | None = None
    """The most that the container's own files were seen to take; null: the engine bounds them,
    or they are not seen."""


@dataclass(frozen=True)
class Frozen:
    """The agents are proved dead."""

    exit_state: ExitState | None
    """None: the container runs, and its state is to be graded."""
    oom_events: int
    agent_exits: Mapping[str, int | None]
    """Agent id to exit code (128 + signal) of those that had ended by themselves."""
    limit_reached: bool = True
    """Whether the container's own memory limit was reached. Where that was not seen it counts
    as reached: an OOM kill is then the container's."""
    mode: Freeze | None = "evidence"
    """As it was done; null: the container had ended before, and nothing was left to do."""
    survivors: tuple[Process, ...] = ()
    """What still runs beside the container's first process."""


@dataclass(frozen=True)
class PlayedOut:
    """A task's own solution had its time, or nobody did anything."""

    ending: Ending
    exit_code: int | None
    """Null: it did not end by itself, or there was none."""
    detail: str = ""


@dataclass(frozen=True)
class Collected:
    """The frozen record, written to the trial's folder."""

    evidence: Evidence
    evidence_digest: str
    ledger: tuple[LedgerLine, ...]
    unsound: str
    """Why verification may not run; empty: the evidence is sound."""


@dataclass(frozen=True)
class Verified:
    """The verifier's word."""

    reward: float
    dimensions: Mapping[str, float]


@dataclass(frozen=True)
class Unverified:
    """The verifier gave no usable word."""

    cause: Cause
    detail: str
