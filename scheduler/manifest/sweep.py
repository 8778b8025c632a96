"""A sweep file: which tasks, under which conditions, how often, and by which rules."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from scheduler.manifest.check import check
from scheduler.manifest.document import Document
from scheduler.manifest.faults import ManifestError, Place
from scheduler.manifest.files import read_document
from scheduler.manifest.roots import find_manifests, shipped_endpoints
from workers.contract.base import Strict
from workers.contract.condition import NonEmpty, PositiveFloat, PositiveInt
from workers.contract.relay import RelayKind
from workers.contract.spec import PLAYED, AgentKind, Limits, TimeoutMultipliers
from workers.contract.task import Layer

DEFAULT_ENDPOINTS = "anthropic-live.json"
"""The shipped endpoint file that is used where none is named (as in Buzz)."""


class TaskChoice(Strict):
    """Which tasks: all of a data set, less what the globs leave out.

    A glob with a ``/`` is matched against a task's whole name, any other against its bare
    name and its folder's name.
    """

    path: NonEmpty | None = None
    """A data set's folder or one task's; null: ``tasks`` of the manifests folder."""
    include: tuple[NonEmpty, ...] = ()
    """Empty: all."""
    exclude: tuple[NonEmpty, ...] = ()


class Scoring(Strict):
    """How attempts become a score; frozen in the lock."""

    rule: Literal["strict", "valid_only"] = "strict"
    """``strict``: an invalid attempt counts as failed; ``valid_only``: it is left out."""
    coverage_gate: Annotated[float, Field(ge=0, le=1)] = 0.9
    """Below this share of valid attempts there is no headline, only bounds."""
    pass_threshold: Annotated[float, Field(gt=0, le=1)] = 1.0
    """The least reward that passes, of tasks graded by their container's state."""


class SweepBudget(Strict):
    """What a whole sweep may spend; null is no limit."""

    max_cost_usd: PositiveFloat | None = None
    max_calls: PositiveInt | None = None
    max_input_tokens: PositiveInt | None = None
    max_output_tokens: PositiveInt | None = None


BUDGET_FLAGS = {
    "max_cost_usd": "--budget-usd",
    "max_calls": "--budget-calls",
    "max_input_tokens": "--budget-input-tokens",
    "max_output_tokens": "--budget-output-tokens",
}
"""What the command line calls them."""


class ConditionUse(Strict):
    """One item of ``conditions``; a path alone stands for an item with nothing else."""

    path: NonEmpty
    """Of the condition manifest."""
    include: tuple[NonEmpty, ...] = ()
    """Of the sweep's tasks only these, by the same globs; empty: all."""
    exclude: tuple[NonEmpty, ...] = ()
    attempts: Annotated[int, Field(ge=1, le=100_000)] | None = None
    """k of this condition's cells; null: as the sweep has it."""
    vary: dict[NonEmpty, Any] = Field(default_factory=dict)
    """Axes; every combination makes a condition of its own (see ``vary``)."""


class CanaryRule(Strict):
    """How often canaries run: one attempt for every n-th of the others; null: none."""

    oracle: Annotated[int, Field(ge=1)] | None = None
    """Plays a task's own solution."""
    nop: Annotated[int, Field(ge=1)] | None = None
    """Does nothing."""
    solver: Annotated[int, Field(ge=1)] | None = None
    """The scripted model that does every shipped task right."""
    include: tuple[NonEmpty, ...] = ()
    """Of the sweep's tasks only these, by the same globs; empty: all that fit."""
    exclude: tuple[NonEmpty, ...] = ()


class SweepFile(Strict):
    """A sweep file, schema version 1. Relative paths start at the file's folder."""

    schema_version: Literal[1] = 1
    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9._-]{0,63}$")]
    """The sweep's id is this and its UTC start."""
    tasks: TaskChoice = TaskChoice()
    layer: Layer | None = None
    """Null: tasks of every layer."""
    attempts: Annotated[int, Field(ge=1, le=100_000)] | None = None
    """k of every task; null: what each task's own layer has."""
    conditions: Annotated[tuple[ConditionUse, ...], Field(min_length=1)]
    """Condition manifests, each with the tasks that it runs and what is varied in it."""
    endpoints: NonEmpty | None = None
    """Path of the endpoint file; null: the shipped ``anthropic-live.json``."""
    agent: AgentKind = "reference"
    agent_bin_dir: NonEmpty | None = None
    """Folder with the programs of agent ``buzz``; their digests stand in the lock."""
    relay: RelayKind = "embedded"
    """A relay of its own for every trial, or the deployment that they share."""
    network: Literal["declared", "sealed"] = "declared"
    """``declared``: each task's own request; ``sealed``: no container has a network."""
    store: NonEmpty | None = None
    """URL of the store; null: what the command line or the environment says."""
    scoring: Scoring = Scoring()
    limits: Limits = Limits()
    budget: SweepBudget = SweepBudget()
    canary: CanaryRule = CanaryRule()
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 0
    timeout_multipliers: TimeoutMultipliers = TimeoutMultipliers()
    """Of the tasks' own time limits; frozen in the lock."""


class PlayedSweepFile(SweepFile):
    """A sweep file whose agent asks no model, so that no condition need be named."""

    conditions: tuple[ConditionUse, ...] = ()


@dataclass(frozen=True)
class Overrides:
    """What the command line says in place of a sweep file; null and empty say nothing."""

    name: str | None = None
    layer: str | None = None
    attempts: int | None = None
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    endpoint_config: str | None = None
    """A path that starts at the working directory, wherever the sweep file is."""
    network: str | None = None
    store: str | None = None
    seed: int | None = None
    agent: str | None = None
    agent_bin_dir: str | None = None
    """A path that starts at the working directory, as ``endpoint_config``."""
    relay_url: str | None = None
    relay_owner_key_env: str | None = None
    relay_gateway: str | None = None
    budget: Mapping[str, float] = field(default_factory=dict)
    """By the names of ``SweepBudget``."""
    multipliers: Mapping[str, float] = field(default_factory=dict)
    """By the names of ``TimeoutMultipliers``."""

    def places(self) -> dict[Place, tuple[str, Any]]:
        """Place in a sweep file to (flag, value), of what was said."""
        said: dict[Place, tuple[str, Any]] = {
            ("name",): ("--name", self.name),
            ("layer",): ("--layer", self.layer),
            ("attempts",): ("--attempts", self.attempts),
            ("tasks", "include"): ("--include-task", list(self.include) or None),
            ("tasks", "exclude"): ("--exclude-task", list(self.exclude) or None),
            ("endpoints",): ("--endpoint-config", self.endpoint_config),
            ("network",): ("--network", self.network),
            ("store",): ("--store", self.store),
            ("seed",): ("--seed", self.seed),
            ("agent",): ("--agent", self.agent),
            ("agent_bin_dir",): ("--agent-bin-dir", self.agent_bin_dir),
            ("relay", "url"): ("--relay-url", self.relay_url),
            ("relay", "owner_key_env"): ("--relay-owner-key-env", self.relay_owner_key_env),
            ("relay", "gateway"): ("--relay-gateway", self.relay_gateway),
            **{
                ("budget", name): (BUDGET_FLAGS[name], limit) for name, limit in self.budget.items()
            },
            **{
                ("timeout_multipliers", name): (
                    f"--{name.replace('_', '-')}-timeout-multiplier",
                    each,
                )
                for name, each in self.multipliers.items()
            },
        }
        return {place: pair for place, pair in said.items() if pair[1] is not None}


@dataclass(frozen=True)
class LoadedSweep:
    """A checked sweep file and where its paths start."""

    file: SweepFile
    folder: Path
    manifests: Path
    """The folder of tasks, conditions and the verifier kit."""
    document: Document

    @property
    def tasks_path(self) -> Path:
        """A data set's folder, or one task's."""
        path = self.file.tasks.path
        return self.manifests / "tasks" if path is None else _joined(self.folder, path)

    @property
    def condition_paths(self) -> tuple[Path, ...]:
        """The condition manifests in order."""
        return tuple(_joined(self.folder, each.path) for each in self.file.conditions)

    @property
    def endpoints_path(self) -> Path:
        """The endpoint file."""
        if self.file.endpoints is None:
            return shipped_endpoints(self.manifests) / DEFAULT_ENDPOINTS
        return self._named("endpoints", self.file.endpoints)

    @property
    def programs_path(self) -> Path | None:
        """The folder of agent ``buzz``'s programs; None: none is named."""
        path = self.file.agent_bin_dir
        return None if path is None else self._named("agent_bin_dir", path)

    def _named(self, field: str, path: str) -> Path:
        """A path of a field, from the working directory where a flag says it."""
        by_flag = (field,) in self.document.flags
        return _joined(Path() if by_flag else self.folder, path)


def _joined(folder: Path, path: Path | str) -> Path:
    """A path that starts at a folder, without ``..`` where that names the same file."""
    whole = folder / path
    short = Path(os.path.normpath(whole))
    try:
        same = os.path.realpath(short) == os.path.realpath(whole)
    except ValueError:
        same = False  # A NUL: whoever opens it says so.
    return short if same else whole


def load_sweep(
    path: Path, overrides: Overrides | None = None, manifests: Path | None = None
) -> LoadedSweep:
    """Reads a sweep file, the command line laid over it.

    Raises:
        ManifestError: with every fault of the file and the flags.
    """
    document = read_document(path)
    if isinstance(document.data, dict) and "roster" in document.data:
        raise ManifestError(
            [document.fault((), "this is a condition: give it with --manifest, and --path")]
        )
    if overrides is not None and isinstance(document.data, dict):
        document = document.with_flags(overrides.places())
    return _loaded(document, path.parent, manifests or find_manifests(path.parent))


def sweep_from_flags(
    path: Path,
    conditions: tuple[Path, ...],
    overrides: Overrides | None = None,
    manifests: Path | None = None,
) -> LoadedSweep:
    """The sweep that a file with these contents would give.

    Args:
        path: ``--path``, a data set's folder or one task's.
        conditions: every ``--manifest``; at least one is needed where the agent asks a model.
        overrides: the other flags. Without a name the sweep bears its only condition's,
            or that of the folder.
        manifests: the manifests folder; by default the one that ``path`` belongs to.

    Raises:
        ManifestError: with every fault of the flags.
    """
    given = overrides or Overrides()
    only = conditions[0].stem if len(conditions) == 1 else path.resolve().name
    if given.agent in PLAYED:
        only = f"{path.resolve().name}-{given.agent}"
    places: dict[Place, tuple[str, Any]] = {
        ("name",): ("--name", _slug(only)),
        ("tasks", "path"): ("--path", str(path)),
    }
    if conditions or given.agent not in PLAYED:
        places[("conditions",)] = ("--manifest", [str(each) for each in conditions])
    document = Document("command line", {}).with_flags({**places, **given.places()})
    return _loaded(document, Path(), manifests or find_manifests(path))


def check_sweep(document: Document) -> SweepFile:
    """A document as a sweep file.

    Raises:
        ManifestError: with every fault of the document.
    """
    data = document.data
    played = isinstance(data, dict) and data.get("agent") in PLAYED
    return check(PlayedSweepFile if played else SweepFile, _written_out(document))


def _written_out(document: Document) -> Document:
    """The document with every condition that is a path alone as an item with a path."""
    data = document.data
    if not isinstance(data, dict) or not isinstance(data.get("conditions"), list):
        return document
    listed = [each if isinstance(each, dict) else {"path": each} for each in data["conditions"]]
    return replace(document, data={**data, "conditions": listed})


def _loaded(document: Document, folder: Path, manifests: Path) -> LoadedSweep:
    return LoadedSweep(check_sweep(document), folder, manifests, document)


def _slug(text: str) -> str:
    kept = "".join(sign if sign.isalnum() or sign in "._-" else "-" for sign in text.lower())
    return kept.encode("ascii", "ignore").decode().strip("._-")[:64] or "sweep"
