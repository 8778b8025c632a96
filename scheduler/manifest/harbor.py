"""A ``task.toml`` as Harbor's tasks have it, turned into ours.

Harbor's metadata is free: of it we take what we know, and a table of our own words. Everything
else that a task asks for is honoured or refused by its name; nothing is left out in silence.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from scheduler.manifest.harbor_refusals import check_environment, check_variables
from workers.contract.base import Strict
from workers.contract.condition import NonEmpty
from workers.contract.task import (
    Environment,
    Layer,
    Solution,
    StateFreeze,
    TaskConfig,
    TaskHead,
    TaskMetadata,
    TimeLimit,
    VerifierLimit,
)

Version = Literal["1.0", "1.1", "1.2", "1.3", "1.4"]
Network = Literal["public", "no-network", "none", "allowlist"]
"""``none`` is our word for Harbor's ``no-network``."""
User = NonEmpty | Annotated[int, Field(ge=0)]
NAMESPACE = "harbor"
"""Of a task that does not say its name: the rest of it is its folder's."""
MEMORY_MB = 2048
STORAGE_MB = 10240
"""What a task gets that does not say."""
VERIFIER_S = 600.0
"""Harbor's own default; it has none for agents."""
_DIFFICULTIES = ("easy", "medium", "hard")
_SIZE = re.compile(r"([1-9][0-9]{0,8}) ?([KMG])i?B?", re.IGNORECASE)
_OTHERS = re.compile(r"[^a-z0-9._-]+")


class HarborMetadata(BaseModel):
    """``[metadata]``: any fields; these mean something here."""

    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)

    evaluation_layer: Layer = "workflow"
    difficulty: str = ""
    category: str = ""
    tags: tuple[str, ...] = ()
    freeze: StateFreeze | None = None


class _Phase(Strict):
    """What ``[agent]`` and ``[verifier]`` have alike."""

    user: User | None = None
    network_mode: Network | None = None
    allowed_hosts: tuple[str, ...] | None = None


class HarborAgent(_Phase):
    """``[agent]``."""

    timeout_sec: Annotated[float, Field(gt=0)]


class HarborVerifier(_Phase):
    """``[verifier]``."""

    timeout_sec: Annotated[float, Field(gt=0)] = VERIFIER_S
    env: dict[str, str] = Field(default_factory=dict)
    environment_mode: Literal["shared", "separate"] | None = None
    environment: Any = None
    collect: tuple[Any, ...] = ()

    @model_validator(mode="after")
    def _can_be_honoured(self) -> Self:
        check_variables(self.env)
        if self.environment is not None:
            raise ValueError(
                "environment: this version runs the tests in the agent's own frozen container, "
                "and builds no other for them"
            )
        if self.environment_mode == "separate":
            raise ValueError(
                "environment_mode: 'separate' would grade copied files in another container; this "
                "version runs the tests in the agent's own frozen one ('shared')"
            )
        if self.collect:
            raise ValueError("collect: this version runs no commands before the tests")
        return self


class HarborSolution(Strict):
    """``[solution]``."""

    env: dict[str, str] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _is_plain(self) -> Self:
        check_variables(self.env)
        return self


class HarborEnvironment(Strict):
    """``[environment]``."""

    build_timeout_sec: Annotated[float, Field(gt=0)] | None = None
    docker_image: NonEmpty | None = None
    os: str = "linux"
    cpus: Annotated[float, Field(gt=0)] | None = None
    memory_mb: Annotated[int, Field(gt=0)] | None = None
    storage_mb: Annotated[int, Field(gt=0)] | None = None
    memory: str | None = None
    storage: str | None = None
    gpus: Annotated[int, Field(ge=0)] | None = None
    gpu_types: tuple[str, ...] | None = None
    tpu: Any = None
    mcp_servers: tuple[Any, ...] = ()
    skills_dir: str | None = None
    healthcheck: Any = None
    workdir: str | None = None
    env: dict[str, str] = Field(default_factory=dict)
    allow_internet: bool | None = None
    network_mode: Network | None = None
    allowed_hosts: tuple[str, ...] | None = None

    @model_validator(mode="after")
    def _can_be_honoured(self) -> Self:
        check_variables(self.env)
        check_environment(self)
        for name in ("memory", "storage"):
            text, number = getattr(self, name), getattr(self, f"{name}_mb")
            if text is not None and not _SIZE.fullmatch(text):
                raise ValueError(f"{name}: expected a size like 512M or 2G, found {text!r}")
            if text is not None and number not in (None, _megabytes(text, 0)):
                raise ValueError(f"{name} and {name}_mb say different things: one of them")
        if self.allow_internet is not None and self.network_mode is not None:
            raise ValueError("allow_internet and network_mode say the same: one of them")
        return self

    @property
    def mode(self) -> Literal["public", "none"]:
        """Its network in our words."""
        if self.network_mode is not None:
            return "public" if self.network_mode == "public" else "none"
        return "none" if self.allow_internet is False else "public"

    def limits(self) -> Environment:
        """The same in our words."""
        return Environment(
            network_mode=self.mode,
            cpus=int(self.cpus or 1),
            memory_mb=self.memory_mb or _megabytes(self.memory, MEMORY_MB),
            storage_mb=self.storage_mb or _megabytes(self.storage, STORAGE_MB),
            docker_image=self.docker_image,
            build_timeout_sec=self.build_timeout_sec,
            workdir=self.workdir,
            env=dict(self.env),
        )


class HarborTask(Strict):
    """A ``task.toml`` of a task without ``fixture.yaml``."""

    schema_version: Version | None = None
    version: Version | None = None
    """How older ones call it."""
    task: TaskHead | None = None
    metadata: HarborMetadata = HarborMetadata()
    agent: HarborAgent
    verifier: HarborVerifier = HarborVerifier()
    environment: HarborEnvironment = HarborEnvironment()
    solution: HarborSolution = HarborSolution()
    source: str | None = None
    """Where somebody took the task from; read without effect."""
    artifacts: tuple[Any, ...] = ()
    steps: Any = None
    multi_step_reward_strategy: Any = None

    @model_validator(mode="after")
    def _can_be_honoured(self) -> Self:
        for name in ("steps", "multi_step_reward_strategy"):
            if getattr(self, name) not in (None, []):
                raise ValueError(
                    f"{name}: this version has no tasks of several steps: each step's own "
                    "instruction and tests would have to become a task of its own"
                )
        if self.artifacts:
            raise ValueError(
                "artifacts: this version takes no files out of a container; tests that need one "
                "later copy it to /logs/verifier"
            )
        for name, phase in (("agent", self.agent), ("verifier", self.verifier)):
            mode, hosts = phase.network_mode, phase.allowed_hosts
            same = mode is None or (mode == "public") is (self.environment.mode == "public")
            if mode == "allowlist" or hosts is not None or not same:
                raise ValueError(
                    f"{name}: network_mode and allowed_hosts of one phase: this version has one "
                    "network for the whole trial, that of [environment]"
                )
        return self

    def config(self, folder: str) -> TaskConfig:
        """The same in our words.

        Args:
            folder: the name of the task's folder.
        """
        told = self.metadata
        name = _OTHERS.sub("-", folder.lower()).strip("-._") or "task"
        easy: Any = told.difficulty if told.difficulty in _DIFFICULTIES else None
        return TaskConfig(
            schema_version="1.3",
            task=self.task or TaskHead(name=f"{NAMESPACE}/{name}"),
            metadata=TaskMetadata(
                evaluation_layer=told.evaluation_layer,
                difficulty=easy,
                category=told.category or "unknown",
                tags=told.tags,
                freeze=told.freeze,
            ),
            agent=TimeLimit(timeout_sec=self.agent.timeout_sec, user=_user(self.agent.user)),
            verifier=VerifierLimit(
                timeout_sec=self.verifier.timeout_sec,
                user=_user(self.verifier.user),
                env=dict(self.verifier.env),
            ),
            environment=self.environment.limits(),
            solution=Solution(env=dict(self.solution.env)),
        )


def _user(told: str | int | None) -> str | None:
    return None if told is None else str(told)


def _megabytes(size: str | None, default: int) -> int:
    """A size as Harbor writes it, rounded up."""
    match = _SIZE.fullmatch(size or "")
    if match is None:
        return default
    number = int(match[1])
    return {"K": -(-number // 1024), "M": number, "G": number * 1024}[match[2].upper()]
