"""A task folder in Harbor format: its ``task.toml`` and our ``fixture.yaml``.

``task.toml`` is Harbor's format (schema 1.3) as far as it is named here; tables that Apiary
does not know are refused, so that nothing a task asks for is silently left out.
"""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from workers.contract.base import Strict
from workers.contract.condition import NonEmpty

Layer = Literal["regression", "workflow"]
DEFAULT_ATTEMPTS: dict[str, int] = {"regression": 1, "workflow": 3}
"""k of a layer where nothing else is asked for."""

StateFreeze = Literal["agent", "all", "restart"]
"""How a container whose state is graded is frozen: the agent's process tree is killed and what
outlives it is named; everything but the first process is killed; or the container is started
again, so that nothing of the agent runs."""
Freeze = Literal["evidence"] | StateFreeze
"""``evidence``: the container is killed, since what is graded was taken out of it before."""

SLUG_PATTERN = r"^[a-z0-9][a-z0-9_-]{0,63}(/[a-z0-9][a-z0-9_-]{0,63})*$"


class Author(Strict):
    """An author as Harbor writes one."""

    name: NonEmpty
    email: str | None = None


STATE_ONLY = (
    ("agent", "user"),
    ("verifier", "user"),
    ("environment", "docker_image"),
    ("environment", "build_timeout_sec"),
    ("environment", "workdir"),
    ("environment", "env"),
    ("solution", "env"),
)
"""Fields that only a task may use which is graded by its container's state."""


class TaskHead(Strict):
    """``[task]``."""

    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9._-]*/[a-z0-9][a-z0-9._-]*$")]
    version: str | None = None
    """Of the task's package; read without effect: a task is told apart by its digest."""
    description: str = ""
    authors: tuple[Author, ...] = ()
    keywords: tuple[str, ...] = ()


class TaskMetadata(Strict):
    """``[metadata]``."""

    evaluation_layer: Layer
    difficulty: Literal["easy", "medium", "hard"] | None
    category: NonEmpty
    tags: tuple[str, ...] = ()
    freeze: StateFreeze | None = None
    """Of a task that is graded by its container's state; null: ``agent``."""


class TimeLimit(Strict):
    """``[agent]``; seconds."""

    timeout_sec: Annotated[float, Field(gt=0)]
    user: str | None = None
    """Who runs it in the container, by name or number; null: the image's user."""


class VerifierLimit(TimeLimit):
    """``[verifier]``."""

    env: dict[str, str] = Field(default_factory=dict)
    """Variables of the tests."""


class Solution(Strict):
    """``[solution]``."""

    env: dict[str, str] = Field(default_factory=dict)
    """Variables of ``solution/solve.sh``."""


class Environment(Strict):
    """``[environment]``: what the task's container gets."""

    network_mode: Literal["public", "none"] = "public"
    cpus: Annotated[int, Field(gt=0)] = 1
    memory_mb: Annotated[int, Field(gt=0)] = 1024
    storage_mb: Annotated[int, Field(gt=0)] = 1024
    docker_image: NonEmpty | None = None
    """Pulled by this reference in place of a build; null: ``environment/Dockerfile`` is built."""
    build_timeout_sec: Annotated[float, Field(gt=0)] | None = None
    """Of the build or the pull; null: as long as the sweep's ``limits.build_s``."""
    workdir: str | None = None
    """Where commands begin; null: as the image says."""
    env: dict[str, str] = Field(default_factory=dict)
    """Variables of everything in the container."""


class TaskConfig(Strict):
    """A ``task.toml``."""

    schema_version: Literal["1.3"]
    task: TaskHead
    metadata: TaskMetadata
    agent: TimeLimit
    verifier: VerifierLimit
    environment: Environment
    solution: Solution = Solution()


class DirectoryEntry(Strict):
    """An identity that the trial's directory shows."""

    name: NonEmpty
    role: Literal["user", "bot"]
    identity_id: str = ""
    """What its key is derived from; empty means the name."""
    about: str = ""
    channel_member: bool = False

    @property
    def key_id(self) -> str:
        """The identity id that its key is derived from."""
        return self.identity_id or self.name


class DirectoryRange(Strict):
    """Identities ``<prefix><first>`` … ``<prefix><last>``, numbers padded to ``width``."""

    prefix: NonEmpty
    first: Annotated[int, Field(ge=0)]
    last: Annotated[int, Field(ge=0)]
    width: Annotated[int, Field(ge=1, le=9)] = 2
    role: Literal["user", "bot"]


class MemorySeed(Strict):
    """A memory that the orchestrator has before it starts."""

    slug: Annotated[str, Field(pattern=SLUG_PATTERN)]
    value: NonEmpty


class ScriptedMessage(Strict):
    """A message that the harness posts right after the task message."""

    label: NonEmpty
    actor: NonEmpty
    """``user``, or the identity id of a directory entry."""
    content: NonEmpty
    """``{orchestrator}`` and ``{user}`` stand for their display names."""
    reply_to_task: bool = False
    mention_orchestrator: bool = True


class Fixture(Strict):
    """What a task needs on the relay before it starts (``fixture.yaml``)."""

    schema_version: Literal[1] = 1
    user_display_name: str | None = None
    directory: tuple[DirectoryEntry, ...] = ()
    directory_ranges: tuple[DirectoryRange, ...] = ()
    memories: tuple[MemorySeed, ...] = ()
    scripted_messages: tuple[ScriptedMessage, ...] = ()
    observe_channel_names: tuple[str, ...] = ()
    verifier_inputs: tuple[str, ...] = ()
    """Absolute paths of files of the image that the verifier sees under ``/inputs``."""
    requires_evidence: bool = True
    disable_memory_injection: bool = False

    @model_validator(mode="after")
    def _actors_exist(self) -> Self:
        ids = [entry.key_id for entry in self.entries]
        for key_id in ids:
            if ids.count(key_id) > 1:
                raise ValueError(f"directory identity {key_id!r} stands more than once")
        for message in self.scripted_messages:
            if message.actor != "user" and message.actor not in ids:
                raise ValueError(
                    f"scripted message {message.label!r}: actor {message.actor!r} "
                    f"is neither 'user' nor an identity of the directory"
                )
        labels = [message.label for message in self.scripted_messages]
        if len(set(labels)) != len(labels):
            raise ValueError("two scripted messages have one label")
        for path in self.verifier_inputs:
            if not path.startswith("/") or ".." in path.split("/"):
                raise ValueError(f"verifier input {path!r} must be an absolute path without '..'")
        return self

    @property
    def entries(self) -> tuple[DirectoryEntry, ...]:
        """The directory with its ranges written out, in order of declaration."""
        ranged = tuple(
            DirectoryEntry(name=f"{part.prefix}{number:0{part.width}d}", role=part.role)
            for part in self.directory_ranges
            for number in range(part.first, part.last + 1)
        )
        return self.directory + ranged


class Task(Strict):
    """A task as it goes into a sweep's lock: all that a node needs but the folder's bytes."""

    digest: str
    """SHA-256 over the folder and the verifier kit."""
    config: TaskConfig
    instruction: str
    """``instruction.md``, byte for byte."""
    fixture: Fixture | None = None
    """Null for a Harbor task without ``fixture.yaml``."""

    @property
    def name(self) -> str:
        """The whole name, ``buzz-native/<bare name>``."""
        return self.config.task.name

    @property
    def bare_name(self) -> str:
        """The name without its namespace, as evidence carries it."""
        return self.name.rpartition("/")[2]

    @property
    def freeze(self) -> Freeze:
        """How its container is frozen before it is graded."""
        if self.fixture is not None:
            return "evidence"
        return self.config.metadata.freeze or "agent"

    @property
    def layer(self) -> Layer:
        """The evaluation layer."""
        return self.config.metadata.evaluation_layer
