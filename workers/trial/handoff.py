"""What each phase gives the next: frozen values, so that the type checker keeps their order.

Whoever holds a ``Launched`` has a running container; there is no trial object with optional
fields. Resources are on the trial's exit stack and go in reverse order of acquisition.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from workers.container.interface import Container, Engine, ExitState, Mount
from workers.contract.condition import RosterEntry
from workers.contract.evidence import DirectoryRow, Evidence, ScriptedEvent
from workers.contract.outcome import Cause
from workers.contract.spec import CellSpec, Lease, SweepSpec
from workers.gateway import Gateway, GatewayTrial, LedgerLine
from workers.nostr.attestation import Attestation
from workers.nostr.event import Event
from workers.nostr.keys import Keypair
from workers.relay import EmbeddedRelay, RelayClient
from workers.storage.interface import Store
from workers.trial.files import TrialFolder
from workers.trial.secrets import Secrets

RELAY_PORT = 3600
GATEWAY_PORT = 3601
RELAY_HOST = f"localhost:{RELAY_PORT}"


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


def relay_client(holder: Member | Agent, socket: Path) -> RelayClient:
    """A client of the trial's relay that speaks as one of its identities, from the host."""
    return RelayClient(
        f"http://{RELAY_HOST}", holder.keypair, holder.attestation, unix_socket=socket
    )


@dataclass(frozen=True)
class Provisioned:
    """Relay, channel, identities and gateway token stand ready."""

    relay: EmbeddedRelay
    relay_socket: Path
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


class Ending(enum.StrEnum):
    """How the drive ended."""

    TURN_ENDED = "turn_ended"
    DONE = "done"
    """A team's orchestrator said ``DONE:``."""
    STOPPED = "stopped"
    """Refusal, token limit or round limit."""
    TURN_FAILED = "turn_failed"
    """The turn ended in an error of the model's endpoint."""
    LOGS_FULL = "logs_full"
    """The agents wrote more to their log folder than their task may store."""
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


@dataclass(frozen=True)
class Frozen:
    """The agents are proved dead."""

    exit_state: ExitState
    oom_events: int
    agent_exits: Mapping[str, int | None]
    """Agent id to exit code (128 + signal) of those that had ended by themselves."""


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
