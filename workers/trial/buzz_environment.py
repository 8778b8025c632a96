"""The environment of one agent of the production stack (Buzz harness contract, environment).

What Buzz's own harness sets is set, value for value, and nothing else but three things that the
gateway needs: the provider's base URL leads to it, the provider's key is the agent's token, and
the request dialect that ``auto`` would choose for the real host is written out.
"""

from __future__ import annotations

from workers.contract.buzz import OPENAI_API, openai_api, variables_of
from workers.contract.condition import RosterEntry
from workers.contract.endpoint import Endpoint
from workers.trial.handoff import GATEWAY_PORT, Agent

BIN = "/opt/buzz/bin"
PROMPTS = "/opt/buzz/prompts"
LOG_FILTER = "buzz_acp=info,pool::prompt=info"
"""The targets of the readiness marker and of the markers of turns."""


def environment_of(
    agent: Agent,
    endpoint: Endpoint,
    *,
    relay_url: str,
    channel_id: str,
    token: str,
    effort_default: str,
) -> dict[str, str]:
    """Everything that one ``buzz-acp`` is given beside its container's own variables.

    Args:
        agent: whose environment it is; it holds the agent's key.
        endpoint: of its roster entry.
        relay_url: as the agent dials it.
        channel_id: of the trial.
        token: the agent's at the gateway; it stands for the provider's key.
        effort_default: where the condition pins none.
    """
    filters = (endpoint.env.get("RUST_LOG"), LOG_FILTER)
    return {
        **endpoint.env,
        "RUST_LOG": ",".join(each for each in filters if each),
        "BUZZ_RELAY_URL": relay_url,
        "BUZZ_PRIVATE_KEY": agent.keypair.secret_hex,
        "NOSTR_PRIVATE_KEY": agent.keypair.secret_hex,
        "BUZZ_AUTH_TAG": agent.attestation.to_text(),
        "BUZZ_ACP_AGENT_COMMAND": f"{BIN}/buzz-agent",
        "BUZZ_ACP_AGENT_ARGS": "",
        "BUZZ_ACP_MCP_COMMAND": f"{BIN}/buzz-dev-mcp",
        "BUZZ_ACP_CHANNELS": channel_id,
        "BUZZ_ACP_SUBSCRIBE": "mentions",
        "BUZZ_ACP_RESPOND_TO": "anyone",
        "BUZZ_ACP_NO_MEMORY": "true",
        "BUZZ_ACP_SYSTEM_PROMPT_FILE": f"{PROMPTS}/{agent.id}.system-prompt.md",
        "BUZZ_AGENT_MODEL": endpoint.model or agent.entry.endpoint,
        "BUZZ_AGENT_THINKING_EFFORT": agent.entry.generation.thinking_effort or effort_default,
        "BUZZ_AGENT_MAX_ROUNDS": str(agent.entry.budget.max_calls or 0),
        "BUZZ_AGENT_NO_HINTS": "1",
        **_pinned(agent.entry),
        **_provider(endpoint, token),
    }


def _pinned(entry: RosterEntry) -> dict[str, str]:
    """What a condition pins: an absent value leaves the program its own default."""
    generation = entry.generation
    values = {
        "BUZZ_AGENT_MAX_OUTPUT_TOKENS": generation.max_output_tokens,
        "BUZZ_AGENT_MAX_CONTEXT_TOKENS": generation.context_window_tokens,
        "BUZZ_AGENT_HANDOFF_PERCENT": generation.compact_at_percent,
        "BUZZ_AGENT_HANDOFF_AT_TOKENS": generation.compact_at_tokens,
        "BUZZ_ACP_NO_BASE_PROMPT": "true" if entry.include_platform_prompt is False else None,
    }
    return {name: str(value) for name, value in values.items() if value is not None}


def _provider(endpoint: Endpoint, token: str) -> dict[str, str]:
    """How the agent finds its model: by way of the gateway, whoever the provider is."""
    names = variables_of(endpoint)
    found = {
        "BUZZ_AGENT_PROVIDER": names.provider,
        names.base_url: f"http://localhost:{GATEWAY_PORT}{names.suffix}",
        names.key: token,
    }
    if endpoint.api_key_env is not None:
        found[endpoint.api_key_env] = token
    if names.provider == "openai":
        found[OPENAI_API] = openai_api(endpoint)
    return found
