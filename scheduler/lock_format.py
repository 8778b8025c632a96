"""The format of a lock: what is fixed of a sweep, with the identities that must hold."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal, NamedTuple, Self

from pydantic import Field, model_validator

from scheduler.manifest import CanaryRule, Scoring, SweepBudget
from scheduler.plan import BaseImage, Profile
from workers.contract.base import Strict, sha256_hex
from workers.contract.buzz import BuzzStack
from workers.contract.condition import Condition
from workers.contract.endpoint import Dialect, Provider
from workers.contract.relay import RelayKind, RelaySeen
from workers.contract.spec import (
    AgentKind,
    CanaryKind,
    Limits,
    TimeoutMultipliers,
    attempt_id,
    cell_id,
)
from workers.contract.task import Task


class Versions(Strict):
    """What ran the sweep; null: not installed where it was planned."""

    apiary: str | None
    python: str
    ray: str | None
    docker: str | None
    """Of the client library."""
    nostr_sdk: str | None


class LockedCondition(Strict):
    """A condition whole, and its identity."""

    digest: str
    manifest: Condition
    canary: CanaryKind | None = None
    """Of a canary; it is reported apart and counts in no score."""
    varies: dict[str, str] = Field(default_factory=dict)
    """What the sweep file varied in it: axis to the value's name."""


class LockedEndpoint(Strict):
    """Where a model was reached; the values of ``env`` are left out, they may be secret."""

    provider: Provider
    base_url: str | None
    model: str | None
    dialect: Dialect | None
    """That the sweep's agent speaks; null: it chooses one by the model's name."""
    api_key_env: str | None
    """The variable's name."""
    key_header: str | None = None
    path: str | None = None
    query: dict[str, str] = Field(default_factory=dict)
    extra_headers: dict[str, str] = Field(default_factory=dict)
    extra_headers_env: dict[str, str] = Field(default_factory=dict)
    proxy: str | None = None
    ca_bundle: str | None = None
    stream_usage: bool = False
    max_concurrency: int | None = None
    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None
    env_names: tuple[str, ...] = ()


class LockedCell(NamedTuple):
    """One task under one condition, as a lock plans it."""

    cell: str
    task: Task
    condition: LockedCondition
    attempts: int

    def ids(self, sweep: str) -> Iterator[str]:
        """The ids of its attempts in the order of their indexes."""
        for index in range(self.attempts):
            yield attempt_id(sweep, self.condition.digest, self.task.digest, index)


class Lock(Strict):
    """``sweeps/<sweep>/lock-<n>.json``."""

    schema_version: Literal[1] = 1
    number: Annotated[int, Field(ge=1)] = 1
    sweep: str
    name: str
    started_at: str
    """RFC 3339, UTC."""
    grown_at: str | None = None
    """When this lock was made, RFC 3339, UTC; null in the first one."""
    store: str
    agent: AgentKind
    relay: RelayKind
    relay_seen: RelaySeen | None = None
    """What the deployment's relay said of itself as this was locked; null: it is embedded, or was
    not asked."""
    network: Literal["declared", "sealed"]
    user_attested: Literal[True] = True
    """Every identity, the trial user too, publishes its profile with the owner's attestation."""
    seed: int
    scoring: Scoring
    limits: Limits
    budget: SweepBudget
    base_image: BaseImage | None
    profile: Profile
    versions: Versions
    tasks: tuple[Task, ...]
    conditions: tuple[LockedCondition, ...]
    prompts: dict[str, str]
    """The text of every prompt by its SHA-256."""
    endpoints: dict[str, LockedEndpoint]
    attempts: dict[str, int]
    """Cell to its k; a task need not be run under every condition."""
    timeout_multipliers: TimeoutMultipliers = TimeoutMultipliers()
    """What the tasks' own time limits are multiplied with."""
    buzz: BuzzStack | None = None
    """The programs of agent ``buzz``: their digests change scores, and cannot change any more."""
    canary: CanaryRule = CanaryRule()
    """How often each canary runs; what is planned of them stands in ``attempts``."""

    @model_validator(mode="after")
    def _identities_hold(self) -> Self:
        for condition in self.conditions:
            if condition.manifest.digest != condition.digest:
                raise ValueError(f"conditions: {condition.digest} is not its manifest's digest")
        for digest, text in self.prompts.items():
            if sha256_hex(text.encode()) != digest:
                raise ValueError(f"prompts: {digest} is not its text's digest")
        cells = self.cells
        whole = (
            len(cells) == len(self.attempts)
            and {each.task.digest for each in cells} == {task.digest for task in self.tasks}
            and {each.condition.digest for each in cells} == {c.digest for c in self.conditions}
        )
        if not whole:
            raise ValueError("attempts: the cells are not those of tasks and conditions")
        return self

    def line_of(self, condition: str) -> str:
        """What a condition is told apart by in a trend.

        Its digest; and another one where the tasks' time limits or what passes are not the plain
        ones, since such results are no points of one line.
        """
        longer, least = self.timeout_multipliers, self.scoring.pass_threshold
        if longer == TimeoutMultipliers() and least == Scoring().pass_threshold:
            return condition
        return sha256_hex(f"{condition}\0{least!r}\0{longer.to_json()}".encode())

    @property
    def cells(self) -> tuple[LockedCell, ...]:
        """Every cell that is planned, by task, then in the order of the conditions."""
        return tuple(
            LockedCell(cell, task, condition, self.attempts[cell])
            for task in self.tasks
            for condition in self.conditions
            if (cell := cell_id(condition.digest, task.digest)) in self.attempts
        )
