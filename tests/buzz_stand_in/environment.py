"""``python -m tests.buzz_stand_in.environment``: what we set, held against the specification.

One table for each provider and for a condition that pins everything: every variable, where the
specification gives it, what it must be, and what the runtime sets. The last line is the difference,
which must be empty; it is the exit code too.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from tests.buzz_stand_in.specification import TABLE, Variable, of_provider, problems
from workers.contract.condition import RosterEntry
from workers.contract.endpoint import Endpoint
from workers.nostr.attestation import attest
from workers.nostr.keys import Keypair
from workers.trial.buzz_environment import environment_of
from workers.trial.handoff import Agent

CHANNEL = "6f1c1b9e-7a3f-4d53-9d53-0d2a0d6f2d11"
PINNED = {
    "max_output_tokens": 4096,
    "context_window_tokens": 100_000,
    "thinking_effort": "high",
    "compact_at_percent": 80,
    "compact_at_tokens": 90_000,
}
SECRET = re.compile(r"KEY|TOKEN$|AUTH_TAG")


class Case(NamedTuple):
    """An agent of some roster and where its model is."""

    name: str
    endpoint: Endpoint
    generation: Mapping[str, Any] = MappingProxyType({})
    """What the condition pins."""
    platform_prompt: bool = True
    max_calls: int | None = None


def cases() -> Iterator[Case]:
    """Every provider, with nothing pinned; then everything pinned; then a log filter."""
    for provider, key in (
        ("anthropic", "ANTHROPIC_API_KEY"),
        ("openai", "OPENAI_COMPAT_API_KEY"),
        ("openrouter", "OPENROUTER_API_KEY"),
        ("databricks", "DATABRICKS_TOKEN"),
        ("databricks_v2", "DATABRICKS_TOKEN"),
    ):
        base = "https://workspace.example.org" if provider.startswith("databricks") else None
        endpoint = {"provider": provider, "api_key_env": key, "base_url": base}
        yield Case(provider, Endpoint.model_validate(endpoint))
    openai = {"provider": "openai", "api_key_env": "OPENAI_COMPAT_API_KEY"}
    yield Case("everything pinned", Endpoint.model_validate(openai), PINNED, False, 12)
    filtered = {**openai, "env": {"RUST_LOG": "acp::usage=debug"}}
    yield Case("a log filter of the endpoint's", Endpoint.model_validate(filtered))


def environment(case: Case) -> dict[str, str]:
    """What the runtime sets."""
    entry = RosterEntry.model_validate(
        {
            "id": "solo",
            "kind": "orchestrator",
            "role": "solo",
            "count": 1,
            "endpoint": "model-x",
            "model_revision": "1",
            "prompt": {"path": "p.md", "sha256": "0" * 64},
            "generation": dict(case.generation),
            "budget": {"max_calls": case.max_calls},
            "include_platform_prompt": None if case.platform_prompt else False,
        }
    )
    owner, keys = Keypair.generate(), Keypair.generate()
    return environment_of(
        Agent("solo-1", entry, keys, attest(owner, keys.pubkey)),
        case.endpoint,
        relay_url="ws://localhost:3600",
        channel_id=CHANNEL,
        token="token-of-the-gateway",
        effort_default="medium",
    )


def wanted(case: Case) -> dict[str, str]:
    """The values that the specification fixes for a case, keys aside."""
    filters = case.endpoint.env.get("RUST_LOG")
    values = {
        "RUST_LOG": f"{filters + ',' if filters else ''}buzz_acp=info,pool::prompt=info",
        "BUZZ_RELAY_URL": "ws://localhost:3600",
        "BUZZ_ACP_CHANNELS": CHANNEL,
        "BUZZ_ACP_SYSTEM_PROMPT_FILE": "/opt/buzz/prompts/solo-1.system-prompt.md",
        "BUZZ_AGENT_PROVIDER": case.endpoint.provider,
        "BUZZ_AGENT_MODEL": "model-x",
        "BUZZ_AGENT_THINKING_EFFORT": case.generation.get("thinking_effort", "medium"),
        "BUZZ_AGENT_MAX_ROUNDS": str(case.max_calls or 0),
    }
    pinned = {
        "BUZZ_AGENT_MAX_OUTPUT_TOKENS": case.generation.get("max_output_tokens"),
        "BUZZ_AGENT_MAX_CONTEXT_TOKENS": case.generation.get("context_window_tokens"),
        "BUZZ_AGENT_HANDOFF_PERCENT": case.generation.get("compact_at_percent"),
        "BUZZ_AGENT_HANDOFF_AT_TOKENS": case.generation.get("compact_at_tokens"),
        "BUZZ_ACP_NO_BASE_PROMPT": None if case.platform_prompt else "true",
    }
    return values | {name: str(value) for name, value in pinned.items() if value is not None}


def difference(case: Case, found: Mapping[str, str]) -> list[str]:
    """What differs from the specification, a line each."""
    lines = problems(found)
    values = wanted(case)
    lines += [
        f"{name} is {found.get(name)!r}, expected {value!r}"
        for name, value in values.items()
        if found.get(name) != value
    ]
    unpinned = [row.name for row in TABLE if not row.required and row.name not in values]
    lines += [f"{name} is set though nothing pins it" for name in unpinned if name in found]
    known = {row.name for row in rows_of(case)}
    lines += [f"{name} is in no table" for name in sorted(found) if name not in known]
    return lines


def rows_of(case: Case) -> tuple[Variable, ...]:
    """The table with the provider's own variables."""
    return TABLE + of_provider(case.endpoint.provider)


def main() -> int:
    """Prints the tables and the difference."""
    total = []
    for case in cases():
        found = environment(case)
        print(f"\n{case.name}\n{'variable':<30} {'spec':<10} {'set':<48} expected")  # noqa: T201
        for row in rows_of(case):
            value = found.get(row.name, "(not set)")
            shown = "(secret)" if SECRET.search(row.name) and row.name in found else value or '""'
            wants = row.value or '""'
            print(f"{row.name:<30} {row.section:<10} {shown:<48} {wants}")  # noqa: T201
        total += [f"{case.name}: {line}" for line in difference(case, found)]
    print("\ndifference: " + ("none" if not total else "\n" + "\n".join(total)))  # noqa: T201
    return 1 if total else 0


if __name__ == "__main__":
    sys.exit(main())
