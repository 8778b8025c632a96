"""The condition manifest, field for field Buzz's, and its identity.

A condition is immutable: its identity is the SHA-256 of its canonical form, so changing a
price, a budget or a prompt's digest makes another condition. Source: Buzz condition manifest
version 1 and the fields of its later revisions.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from workers.contract.base import Strict, canonical_json, sha256_hex

NonEmpty = Annotated[str, Field(min_length=1)]
NAME_CHARS = 500


def _shown_name(name: str) -> str:
    if not name.isprintable() or name != name.strip() or len(name) > NAME_CHARS:
        raise ValueError(
            f"expected a name of at most {NAME_CHARS} printable characters, without blanks at "
            "its ends: it stands in tables, labels and messages"
        )
    return name


ConditionName = Annotated[NonEmpty, AfterValidator(_shown_name)]
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
PositiveInt = Annotated[int, Field(gt=0, le=2**53)]
PositiveFloat = Annotated[float, Field(gt=0)]
Price = Annotated[float, Field(ge=0, le=1e9)]

Effort = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]

LATER_FIELDS: tuple[tuple[str, ...], ...] = (
    ("roster", "*", "generation", "max_output_tokens"),
    ("roster", "*", "generation", "context_window_tokens"),
    ("roster", "*", "generation", "compact_at_percent"),
    ("roster", "*", "generation", "compact_at_tokens"),
    ("roster", "*", "generation", "thinking_effort"),
    ("roster", "*", "include_platform_prompt"),
    ("environment",),
    ("environment", "override_cpus"),
    ("environment", "override_memory_mb"),
    ("environment", "override_storage_mb"),
    ("prices", "*", "cache_read_rate"),
)
"""Fields that are dropped from the canonical form where the manifest does not have them."""


class PromptFile(Strict):
    """A prompt by path and digest; the digest is what counts."""

    path: NonEmpty
    sha256: Sha256


class Generation(Strict):
    """How a model is asked."""

    temperature: Annotated[float, Field(ge=0)] = 0.0
    """Recorded only: it never reaches the provider (as in Buzz)."""
    max_output_tokens: PositiveInt | None = None
    context_window_tokens: PositiveInt | None = None
    thinking_effort: Effort | None = None
    compact_at_percent: Annotated[int, Field(ge=1, le=100)] | None = None
    compact_at_tokens: PositiveInt | None = None
    extra: dict[str, Any] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _window_holds_output(self) -> Self:
        output, window = self.max_output_tokens, self.context_window_tokens
        if output is not None and window is not None:
            if output >= window:
                raise ValueError(
                    f"max_output_tokens {output} must be less than "
                    f"context_window_tokens {window}: output is reserved from the window"
                )
            if self.compact_at_tokens is not None and self.compact_at_tokens > window - output:
                raise ValueError(
                    f"compact_at_tokens {self.compact_at_tokens} must be at most "
                    f"{window - output} (window less output)"
                )
        return self


class Budget(Strict):
    """What one agent may spend in a trial; null is no limit."""

    max_calls: PositiveInt | None = None
    max_input_tokens: PositiveInt | None = None
    max_output_tokens: PositiveInt | None = None
    max_cost_usd: PositiveFloat | None = None


class RosterEntry(Strict):
    """A class of agents: ``count`` of them, ids ``<id>-1`` … ``<id>-<count>``."""

    id: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9._-]*$")]
    kind: Literal["orchestrator", "worker"]
    role: NonEmpty
    count: PositiveInt
    endpoint: NonEmpty
    model_revision: NonEmpty
    prompt: PromptFile
    persona: PromptFile | None = None
    skills: tuple[PromptFile, ...] = ()
    generation: Generation = Generation()
    """Absent and empty are one condition: nothing is pinned."""
    budget: Budget = Budget()
    concurrency: PositiveInt = 1
    include_platform_prompt: bool | None = None
    """Whether the agent's own base prompt comes first; absent means that it does."""

    @model_validator(mode="after")
    def _concurrency_fits(self) -> Self:
        if self.concurrency > self.count:
            raise ValueError(f"concurrency {self.concurrency} must be at most count {self.count}")
        return self


class Prices(Strict):
    """US dollars per million tokens, frozen with the condition."""

    input_per_million_usd: Price
    cached_input_per_million_usd: Price
    output_per_million_usd: Price
    cache_read_rate: Annotated[float, Field(ge=0, le=1)] | None = None
    """Share of input taken as cached where the provider reports no cached count."""


class TrialBudget(Strict):
    """What a whole trial may take."""

    timeout_seconds: PositiveInt
    max_cost_usd: PositiveFloat | None = None


class EnvironmentOverride(Strict):
    """Resources that replace the task's own request."""

    override_cpus: PositiveInt | None = None
    override_memory_mb: PositiveInt | None = None
    override_storage_mb: PositiveInt | None = None


class Condition(Strict):
    """One condition manifest."""

    schema_version: Literal["1"] = "1"
    condition: ConditionName
    roster: Annotated[tuple[RosterEntry, ...], Field(min_length=1)]
    prices: dict[str, Prices]
    trial_budget: TrialBudget
    environment: EnvironmentOverride | None = None
    metadata: dict[str, Any] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _roster_is_sound(self) -> Self:
        ids = [entry.id for entry in self.roster]
        for entry_id in ids:
            if ids.count(entry_id) > 1:
                raise ValueError(f"roster id {entry_id!r} stands more than once")
        orchestrators = sum(e.count for e in self.roster if e.kind == "orchestrator")
        if orchestrators != 1:
            raise ValueError(f"a roster needs exactly one orchestrator, this has {orchestrators}")
        for entry in self.roster:
            if entry.endpoint not in self.prices:
                raise ValueError(f"prices lack an entry for endpoint {entry.endpoint!r}")
        return self

    @property
    def endpoints(self) -> tuple[str, ...]:
        """The endpoint names that the roster uses, in roster order, each once."""
        return tuple(dict.fromkeys(entry.endpoint for entry in self.roster))

    @property
    def prompt_digests(self) -> tuple[str, ...]:
        """SHA-256 of every prompt, persona and skill of the roster, each once."""
        files = [each for entry in self.roster for each in (entry.prompt, entry.persona)]
        files += [skill for entry in self.roster for skill in entry.skills]
        return tuple(dict.fromkeys(each.sha256 for each in files if each is not None))

    @property
    def agents(self) -> tuple[tuple[str, RosterEntry], ...]:
        """Every agent as (agent id, roster entry), the orchestrator first."""
        ordered = sorted(self.roster, key=lambda entry: entry.kind != "orchestrator")
        return tuple(
            (f"{entry.id}-{number}", entry)
            for entry in ordered
            for number in range(1, entry.count + 1)
        )

    def canonical(self) -> bytes:
        """The bytes whose SHA-256 is the identity (Buzz manifest version 1)."""
        data = self.model_dump(mode="json")
        for path in LATER_FIELDS:
            _drop_null(data, path)
        if not data.get("environment", True):
            # Empty says as little as absent, and Buzz's later revision agrees.
            del data["environment"]
        return canonical_json(data)

    @property
    def digest(self) -> str:
        """The condition's identity."""
        return sha256_hex(self.canonical())


def _drop_null(data: Any, path: tuple[str, ...]) -> None:
    if not isinstance(data, dict | list):
        return
    head, rest = path[0], path[1:]
    if head == "*":
        for child in data.values() if isinstance(data, dict) else data:
            _drop_null(child, rest)
    elif isinstance(data, dict) and head in data:
        if rest:
            _drop_null(data[head], rest)
        elif data[head] is None:
            del data[head]
