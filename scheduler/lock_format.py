"""The format of a lock: what is fixed of a sweep, with the identities that must hold."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from scheduler.manifest import Scoring, SweepBudget
from scheduler.plan import BaseImage, Profile
from workers.contract.base import Strict, sha256_hex
from workers.contract.condition import Condition
from workers.contract.endpoint import Dialect, Provider
from workers.contract.spec import Limits, cell_id
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


class LockedEndpoint(Strict):
    """Where a model was reached; the values of ``env`` are left out, they may be secret."""

    provider: Provider
    base_url: str | None
    model: str | None
    dialect: Dialect
    api_key_env: str | None
    """The variable's name."""
    env_names: tuple[str, ...] = ()


class Lock(Strict):
    """``sweeps/<sweep>/lock-<n>.json``."""

    schema_version: Literal[1] = 1
    number: Annotated[int, Field(ge=1)] = 1
    sweep: str
    name: str
    started_at: str
    """RFC 3339, UTC."""
    store: str
    agent: Literal["reference"]
    relay: Literal["embedded"]
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
    """Cell to its k."""

    @model_validator(mode="after")
    def _identities_hold(self) -> Self:
        for condition in self.conditions:
            if condition.manifest.digest != condition.digest:
                raise ValueError(f"conditions: {condition.digest} is not its manifest's digest")
        for digest, text in self.prompts.items():
            if sha256_hex(text.encode()) != digest:
                raise ValueError(f"prompts: {digest} is not its text's digest")
        cells = {cell_id(c.digest, task.digest) for c in self.conditions for task in self.tasks}
        if cells != self.attempts.keys():
            raise ValueError("attempts: the cells are not those of tasks and conditions")
        return self
