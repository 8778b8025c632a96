"""The flags of a sweep, for ``run`` and ``plan``: a sweep file, or what stands for one."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import click

from scheduler.cli.exits import UsageFault
from scheduler.cli.names import find_sweep
from scheduler.cli.options import budget_options
from scheduler.growth import Growth, grow
from scheduler.lock import read_locks
from scheduler.manifest import LoadedSweep, Overrides, load_sweep, sweep_from_flags
from scheduler.manifest.inputs import store_url_of
from scheduler.plan import BaseImage, Plan, make_plan
from scheduler.settings import Settings
from workers.contract.spec import PLAYED
from workers.storage import Store, open_store

F = TypeVar("F", bound=Callable[..., Any])

_MULTIPLIER = click.FloatRange(min=0, min_open=True)
_MULTIPLIED = {
    "agent": "agent",
    "verifier": "verifier",
    "agent_setup": "agent's set-up",
    "environment_build": "image's build",
}
"""By the names of ``TimeoutMultipliers``."""

_OPTIONS = (
    click.argument("sweep_file", required=False, type=click.Path(path_type=Path)),
    click.option("--path", type=click.Path(path_type=Path), help="Folder of tasks, or one task's."),
    click.option(
        "--manifest",
        "manifests",
        multiple=True,
        type=click.Path(path_type=Path),
        help="Condition manifest; may be repeated. Needed with --path.",
    ),
    click.option(
        "--agent",
        type=click.Choice(["reference", "buzz", "oracle", "nop"]),
        help="Who works: a model's agent (Apiary's own, or Buzz's production stack), a task's own "
        "solution, or nobody. The last two take no --manifest.",
    ),
    click.option(
        "--agent-bin-dir",
        metavar="DIR",
        help="Folder with Linux builds of buzz-acp, buzz-agent and buzz-dev-mcp, for --agent buzz.",
    ),
    click.option("--endpoint-config", metavar="FILE", help="Endpoint file, JSON or YAML."),
    click.option(
        "--relay-url",
        metavar="URL",
        help="The relay of a Buzz deployment, its RELAY_URL; by default every trial has its own.",
    ),
    click.option(
        "--relay-owner-key-env",
        metavar="NAME",
        help="The variable on every node with the secret key of an owner, a member of that relay.",
    ),
    click.option(
        "--relay-gateway",
        metavar="HOST:PORT",
        help="Where nodes connect to in place of the host and port of --relay-url.",
    ),
    click.option(
        "--layer",
        type=click.Choice(["regression", "workflow"]),
        help="Only tasks of this layer.",
    ),
    click.option(
        "-k",
        "--attempts",
        type=click.IntRange(min=1),
        help="Attempts of every task; otherwise each layer has its own.",
    ),
    click.option("-i", "--include-task", multiple=True, metavar="GLOB", help="Only these tasks."),
    click.option("-x", "--exclude-task", multiple=True, metavar="GLOB", help="Not these tasks."),
    click.option(
        "-n",
        "--n-concurrent",
        type=click.IntRange(min=1),
        help="Trials at once on each node; otherwise by its cores and memory.",
    ),
    click.option(
        "--network",
        type=click.Choice(["declared", "sealed"]),
        help="What tasks declare, or no network for any container.",
    ),
    click.option(
        "--into",
        metavar="SWEEP",
        help="Let this sweep grow to what is given here, in place of starting another.",
    ),
    click.option("--name", help="The sweep's name; its id is this and the start."),
    click.option("--seed", type=click.IntRange(min=0), help="Of scripted models."),
    click.option(
        "--timeout-multiplier",
        type=_MULTIPLIER,
        metavar="X",
        help="Multiplies the tasks' time limits of agent, verifier, set-up and build.",
    ),
    *(
        click.option(
            f"--{name.replace('_', '-')}-timeout-multiplier",
            type=_MULTIPLIER,
            metavar="X",
            help=f"The same, of the {what} alone.",
        )
        for name, what in _MULTIPLIED.items()
    ),
)


@dataclass(frozen=True)
class SweepFlags:
    """What was said of the sweep on the command line."""

    sweep_file: Path | None
    path: Path | None
    manifests: tuple[Path, ...]
    endpoint_config: str | None
    relay_url: str | None
    relay_owner_key_env: str | None
    relay_gateway: str | None
    layer: str | None
    attempts: int | None
    include_task: tuple[str, ...]
    exclude_task: tuple[str, ...]
    n_concurrent: int | None
    network: str | None
    into: str | None
    name: str | None
    seed: int | None
    agent: str | None
    agent_bin_dir: str | None
    budget: Mapping[str, float]
    timeout_multiplier: float | None
    agent_timeout_multiplier: float | None
    verifier_timeout_multiplier: float | None
    agent_setup_timeout_multiplier: float | None
    environment_build_timeout_multiplier: float | None

    @property
    def multipliers(self) -> dict[str, float]:
        """What was said of multipliers, that of all for those without one of their own."""
        said = {
            name: getattr(self, f"{name}_timeout_multiplier") or self.timeout_multiplier
            for name in _MULTIPLIED
        }
        return {name: value for name, value in said.items() if value is not None}

    def load(self, store_url: str | None) -> LoadedSweep:
        """The sweep that is meant.

        Raises:
            UsageFault: neither a file nor ``--path`` was given, or both.
            ManifestError: with every fault of file and flags.
        """
        overrides = Overrides(
            name=self.name,
            layer=self.layer,
            attempts=self.attempts,
            include=self.include_task,
            exclude=self.exclude_task,
            endpoint_config=self.endpoint_config,
            network=self.network,
            store=store_url,
            seed=self.seed,
            agent=self.agent,
            agent_bin_dir=self.agent_bin_dir,
            relay_url=self.relay_url,
            relay_owner_key_env=self.relay_owner_key_env,
            relay_gateway=self.relay_gateway,
            budget=self.budget,
            multipliers=self.multipliers,
        )
        if self.sweep_file is not None:
            if self.path is not None or self.manifests:
                raise UsageFault(
                    f"{self.sweep_file} says which tasks and conditions: "
                    "leave out --path and --manifest, or the file"
                )
            return load_sweep(self.sweep_file, overrides)
        if self.path is None:
            raise UsageFault("say what to run: a sweep file, or --path with --manifest")
        if self.agent in PLAYED and self.manifests:
            raise UsageFault(f"--agent {self.agent} asks no model: leave out --manifest")
        if not self.manifests and self.agent not in PLAYED:
            raise UsageFault("--path needs at least one --manifest, a condition")
        return sweep_from_flags(self.path, self.manifests, overrides)


def sweep_flags(function: F) -> F:
    """Adds the flags; the function gets them together as ``flags``."""

    @functools.wraps(function)
    def gathered(**given: Any) -> Any:
        names = SweepFlags.__dataclass_fields__
        flags = SweepFlags(**{name: given.pop(name) for name in names})
        return function(flags=flags, **given)

    gathered = budget_options(gathered)
    for option in reversed(_OPTIONS):
        gathered = option(gathered)
    return gathered  # type: ignore[return-value]  # same signature but for the gathered flags


def base_of(settings: Settings) -> BaseImage | None:
    """The base image that set-up or the environment chose, as it is named."""
    reference = settings.base_image
    return None if reference is None else BaseImage(reference=reference, digest=None)


def planned(
    flags: SweepFlags,
    store_url: str | None,
    settings: Settings,
    base_image: BaseImage | None,
    *,
    to_run: bool,
) -> Plan:
    """The plan of the sweep that is meant, starting now.

    A provider's key that is not set is a fault where the plan is to be run, else a warning.

    Raises:
        UsageFault: the flags do not say what to run.
        ManifestError: with every fault of every file.
    """
    return make_plan(
        flags.load(store_url),
        started_at=datetime.now(UTC),
        environment=_environment(settings),
        base_image=base_image,
        n_concurrent=flags.n_concurrent,
        keys_needed=to_run,
    )


def grown(
    flags: SweepFlags,
    into: str,
    store_url: str | None,
    settings: Settings,
    base_image: BaseImage | None,
    *,
    to_run: bool,
) -> tuple[Growth, Store]:
    """What the sweep that ``--into`` names would grow to, and the store that has it.

    Raises:
        UsageFault: the flags do not say what to run, or name no sweep.
        ManifestError: with every fault of every file, with what may not change, and with what
            would be missing.
        LockError: the sweep's locks are not there.
        FormatError: one is not of this version's format.
        StoreError: the store refused.
    """
    if flags.name is not None:
        raise UsageFault("--into names the sweep: leave out --name")
    sweep = flags.load(store_url)
    environment = _environment(settings)
    store = open_store(store_url_of(sweep, environment))
    growth = grow(
        sweep,
        read_locks(store, find_sweep(store, into)),
        now=datetime.now(UTC),
        environment=environment,
        base_image=base_image,
        keys_needed=to_run,
    )
    return growth, store


def _environment(settings: Settings) -> Mapping[str, str]:
    return {"APIARY_STORE": settings.store_url, **settings.environment}
