"""The environment of one agent, variable by variable as ``spec/buzz-wire.md`` §4–6 has it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import NamedTuple

from tests.buzz_stand_in.nostr import attested, pubkey_of

HEX64 = r"[0-9a-f]{64}"
UUID = r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"
EFFORTS = "none|minimal|low|medium|high|xhigh|max"
POSITIVE = r"[1-9][0-9]*"
SHARED_FILTER = "buzz_acp=info,pool::prompt=info"


class Variable(NamedTuple):
    """One variable of the table."""

    name: str
    section: str
    """Where the specification gives it."""
    value: str
    """What it must be, a pattern for the whole value."""
    required: bool = True
    """Else it is set only where the condition pins it."""


TABLE = (
    Variable("RUST_LOG", "4.1, 6.4", rf"([^\n]+,)?{re.escape(SHARED_FILTER)}"),
    Variable("BUZZ_RELAY_URL", "4.1, 6.4", r"wss?://[^/\s]+"),
    Variable("BUZZ_PRIVATE_KEY", "4.1, 6.4", HEX64),
    Variable("NOSTR_PRIVATE_KEY", "5.9, 6.4", HEX64),
    Variable("BUZZ_AUTH_TAG", "2.13, 6.4", r"\[.+\]"),
    Variable("BUZZ_ACP_AGENT_COMMAND", "4.1, 6.4", "/opt/buzz/bin/buzz-agent"),
    Variable("BUZZ_ACP_AGENT_ARGS", "4.1, 6.4", ""),
    Variable("BUZZ_ACP_MCP_COMMAND", "4.1, 6.4", "/opt/buzz/bin/buzz-dev-mcp"),
    Variable("BUZZ_ACP_CHANNELS", "4.1, 6.4", UUID),
    Variable("BUZZ_ACP_SUBSCRIBE", "4.1, 6.4", "mentions"),
    Variable("BUZZ_ACP_RESPOND_TO", "4.1, 6.4", "anyone"),
    Variable("BUZZ_ACP_NO_MEMORY", "4.1, 6.4", "true"),
    Variable("BUZZ_ACP_SYSTEM_PROMPT_FILE", "4.1, 6.4", r"/opt/buzz/prompts/.+\.system-prompt\.md"),
    Variable("BUZZ_ACP_NO_BASE_PROMPT", "4.1, 6.9", "true", required=False),
    Variable(
        "BUZZ_AGENT_PROVIDER", "5.2, 6.4", "anthropic|openai|openrouter|databricks|databricks_v2"
    ),
    Variable("BUZZ_AGENT_MODEL", "5.2, 6.4", r"\S+"),
    Variable("BUZZ_AGENT_THINKING_EFFORT", "5.2, 6.4", EFFORTS),
    Variable("BUZZ_AGENT_MAX_ROUNDS", "5.2, 6.4", r"[0-9]+"),
    Variable("BUZZ_AGENT_NO_HINTS", "5.2, 6.4", "1"),
    Variable("BUZZ_AGENT_MAX_OUTPUT_TOKENS", "5.2, 6.9", POSITIVE, required=False),
    Variable("BUZZ_AGENT_MAX_CONTEXT_TOKENS", "5.2, 6.9", POSITIVE, required=False),
    Variable("BUZZ_AGENT_HANDOFF_PERCENT", "6.9", r"[1-9][0-9]?|100", required=False),
    Variable("BUZZ_AGENT_HANDOFF_AT_TOKENS", "6.9", POSITIVE, required=False),
)

PROVIDERS: dict[str, tuple[str, str]] = {
    "anthropic": ("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"),
    "openai": ("OPENAI_COMPAT_API_KEY", "OPENAI_COMPAT_BASE_URL"),
    "openrouter": ("OPENROUTER_API_KEY", "OPENROUTER_BASE_URL"),
    "databricks": ("DATABRICKS_TOKEN", "DATABRICKS_HOST"),
    "databricks_v2": ("DATABRICKS_TOKEN", "DATABRICKS_HOST"),
}
"""Provider to the variables of its key and base URL (5.2)."""


def of_provider(provider: str) -> tuple[Variable, ...]:
    """What a provider needs beside the table."""
    key, base = PROVIDERS[provider]
    rows = [
        Variable(key, "5.2, 6.4", r"\S+"),
        Variable(base, "5.2", r"https?://[^\s?#]+"),
    ]
    if provider == "openai":
        rows.append(Variable("OPENAI_COMPAT_API", "5.2", "auto|chat|responses"))
    return tuple(rows)


def problems(environment: Mapping[str, str]) -> list[str]:
    """What is wrong with an environment, a line each; empty: it is as the specification has it."""
    found = []
    provider = environment.get("BUZZ_AGENT_PROVIDER", "")
    rows = TABLE + (of_provider(provider) if provider in PROVIDERS else ())
    for row in rows:
        if row.name not in environment:
            if row.required:
                found.append(f"{row.name} is missing ({row.section})")
        elif not re.fullmatch(row.value, environment[row.name]):
            # No value is printed: it may be a key.
            found.append(f"{row.name} is not as {row.section} has it, expected {row.value}")
    known = {row.name for row in rows}
    found += [
        f"{name} is unknown to the specification"
        for name in sorted(environment)
        if name.startswith("BUZZ_") and name not in known
    ]
    foreign = {each for pair in PROVIDERS.values() for each in pair} - known
    found += [f"{name} is another provider's" for name in sorted(foreign & environment.keys())]
    return found or _contradictions(environment)


def _contradictions(environment: Mapping[str, str]) -> list[str]:
    found = []
    secret = environment["BUZZ_PRIVATE_KEY"]
    if environment["NOSTR_PRIVATE_KEY"] != secret:
        found.append("NOSTR_PRIVATE_KEY is not BUZZ_PRIVATE_KEY (6.4)")
    try:
        tag = json.loads(environment["BUZZ_AUTH_TAG"])
    except ValueError:
        tag = []
    if not isinstance(tag, list) or not attested([str(each) for each in tag], pubkey_of(secret)):
        found.append("BUZZ_AUTH_TAG is no attestation of this key (2.13)")
    output = environment.get("BUZZ_AGENT_MAX_OUTPUT_TOKENS", "65536")
    window = environment.get("BUZZ_AGENT_MAX_CONTEXT_TOKENS", "200000")
    if int(output) >= int(window):
        found.append("BUZZ_AGENT_MAX_OUTPUT_TOKENS is not below the context window (5.2)")
    return found
