"""``buzz-agent``: sessions, a model in its provider's dialect, and one MCP server (spec §5)."""

from __future__ import annotations

import http.client
import json
import os
import sys
import time
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import quote, urlsplit

from tests.buzz_stand_in.lines import Child, RpcError, serve
from tests.buzz_stand_in.specification import PROVIDERS

PASSED = ("PATH", "HOME", "TERM", "LANG", "LC_ALL", "TMPDIR", "NOSTR_PRIVATE_KEY")
"""Variables that an MCP server inherits (5.8), with those that ``session/new`` names."""
ATTEMPTS = 3
TOOL = "buzz-dev-mcp__shell"
SCHEMA = {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}


class Answer(NamedTuple):
    """What a model said."""

    call: tuple[str, dict[str, Any]] | None
    """Id and arguments of a call of the shell tool."""
    raw: Any
    """For the history, as the dialect has it."""
    usage: tuple[int | None, int | None, int | None]
    """Input, cached, output."""


class Agent:
    """One process of it; it has one session."""

    def __init__(self, environment: Mapping[str, str], mode: Mapping[str, float]) -> None:
        self._env = environment
        self._mode = mode
        self._provider = environment["BUZZ_AGENT_PROVIDER"]
        key, base = PROVIDERS[self._provider]
        self._key, self._base = environment[key], environment[base].rstrip("/")
        self._model = environment["BUZZ_AGENT_MODEL"]
        self._history: list[Any] = []
        self._system = ""
        self._tool: Child | None = None

    def methods(self) -> dict[str, Any]:
        """What it answers to."""
        return {
            "initialize": lambda _: {"protocolVersion": 2, "agentInfo": {"name": "buzz-agent"}},
            "session/new": self._new,
            "session/prompt": self._prompt,
        }

    def _new(self, params: dict[str, Any]) -> Any:
        self._system = params["systemPrompt"]
        (server,) = params["mcpServers"]
        kept = {name: self._env[name] for name in PASSED if name in self._env}
        self._tool = Child([server["command"]], {**kept, **server["env"]})
        self._tool.ask("initialize", protocolVersion="2025-06-18", capabilities={})
        return {"sessionId": "ses_1"}

    def _prompt(self, params: dict[str, Any]) -> Any:
        """The turn loop (5.6)."""
        self._history.append({"role": "user", "content": params["prompt"]})
        limit, rounds = int(self._env["BUZZ_AGENT_MAX_ROUNDS"]), 0
        while True:
            if limit and rounds >= limit:
                return {"stopReason": "max_turn_requests"}
            rounds += 1
            answer = self._ask()
            self._remember(answer)
            if answer.call is None:
                return {"stopReason": "end_turn"}
            assert self._tool is not None
            called = self._tool.ask("tools/call", name="shell", arguments=answer.call[1])
            self._return(answer.call[0], called["content"][0]["text"])

    @property
    def dialect(self) -> str:
        """Chat, responses or messages (5.3)."""
        if self._provider == "anthropic":
            return "messages"
        if self._provider == "openai" and self._env["OPENAI_COMPAT_API"] == "responses":
            return "responses"
        return "chat"

    def _url(self) -> str:
        match self._provider:
            case "anthropic":
                return f"{self._base}/v1/messages"
            case "databricks":
                return f"{self._base}/serving-endpoints/{quote(self._model)}/invocations"
            case "databricks_v2":
                return f"{self._base}/ai-gateway/mlflow/v1/chat/completions"
            case _:
                suffix = "responses" if self.dialect == "responses" else "chat/completions"
                return f"{self._base}/{suffix}"

    def _body(self) -> dict[str, Any]:
        """A request without streaming (5.3)."""
        body: dict[str, Any] = {} if self._provider == "databricks" else {"model": self._model}
        limit = int(self._env.get("BUZZ_AGENT_MAX_OUTPUT_TOKENS", "65536"))
        described = {"name": TOOL, "description": "Runs a command."}
        match self.dialect:
            case "messages":
                body |= {"max_tokens": limit, "system": self._system, "messages": self._history}
                body["tools"] = [{**described, "input_schema": SCHEMA}]
            case "responses":
                body |= {"instructions": self._system, "max_output_tokens": limit}
                body |= {"input": self._history, "tool_choice": "auto"}
                body["tools"] = [{"type": "function", **described, "parameters": SCHEMA}]
            case _:
                system = {"role": "system", "content": self._system}
                name = "max_tokens" if self._provider == "openrouter" else "max_completion_tokens"
                body |= {"stream": False, name: limit, "messages": [system, *self._history]}
                function = {**described, "parameters": SCHEMA}
                body |= {"tools": [{"type": "function", "function": function}]}
                body["tool_choice"] = "auto"
        return body

    def _ask(self) -> Answer:
        """One call of the model, with the retries of 5.5 and the line of 5.7."""
        started, status = time.monotonic(), 0
        for attempt in range(1, ATTEMPTS + 1):
            status, document = self._post()
            if status == 200:
                answer = _read(self.dialect, document)
                self._account(answer, started)
                return answer
            if status not in (429, 499) and status < 500:
                break
            time.sleep(0.5 * 2 ** (attempt - 1) * 0.75)
        raise RpcError(f"llm: ({self._model}) status {status}")

    def _post(self) -> tuple[int, Any]:
        parts = urlsplit(self._url())
        bearer = {"Authorization": f"Bearer {self._key}"}
        anthropic = {"x-api-key": self._key, "anthropic-version": "2023-06-01"}
        headers = {"Content-Type": "application/json"}
        headers |= anthropic if self._provider == "anthropic" else bearer
        connection = http.client.HTTPConnection(parts.hostname or "", parts.port or 80, timeout=240)
        try:
            connection.request("POST", parts.path, json.dumps(self._body()), headers)
            response = connection.getresponse()
            data = response.read()
        except OSError:
            return 599, None
        finally:
            connection.close()
        return response.status, json.loads(data) if response.status == 200 else None

    def _account(self, answer: Answer, started: float) -> None:
        given, cached, made = answer.usage
        if "miscounts" in self._mode and made is not None:
            made += 1
        fields = [
            f'model="{self._model}"',
            f'provider="{self._provider}"',
            f'thinking_effort="{self._env["BUZZ_AGENT_THINKING_EFFORT"]}"',
            f"duration_ms={round((time.monotonic() - started) * 1000)}",
            f"input_tokens={_some(given)}",
            f"cached_input_tokens={_some(cached)}",
            f"output_tokens={_some(made)}",
        ]
        sys.stderr.write(f"INFO buzz_agent::llm: llm: call completed {' '.join(fields)}\n")
        sys.stderr.flush()

    def _remember(self, answer: Answer) -> None:
        if self.dialect == "responses":
            self._history += answer.raw
        else:
            self._history.append(answer.raw)

    def _return(self, call: str, text: str) -> None:
        match self.dialect:
            case "messages":
                block = {"type": "tool_result", "tool_use_id": call, "content": text}
                self._history.append({"role": "user", "content": [block]})
            case "responses":
                output = {"type": "function_call_output", "call_id": call, "output": text}
                self._history.append(output)
            case _:
                self._history.append({"role": "tool", "tool_call_id": call, "content": text})


def _some(count: int | None) -> str:
    return "None" if count is None else f"Some({count})"


def _read(dialect: str, document: Any) -> Answer:
    """The fields of 5.4."""
    usage = document.get("usage") or {}
    match dialect:
        case "messages":
            uses = [block for block in document["content"] if block["type"] == "tool_use"]
            call = (uses[0]["id"], uses[0]["input"]) if uses else None
            cached = usage.get("cache_read_input_tokens")
            written = usage.get("cache_creation_input_tokens")
            given = usage["input_tokens"] + (cached or 0) + (written or 0)
            raw: Any = {"role": "assistant", "content": document["content"]}
            return Answer(call, raw, (given, cached, usage["output_tokens"]))
        case "responses":
            uses = [item for item in document["output"] if item["type"] == "function_call"]
            call = (uses[0]["call_id"], json.loads(uses[0]["arguments"])) if uses else None
            details = usage.get("input_tokens_details") or {}
            counts = (usage.get("input_tokens"), details.get("cached_tokens"))
            kept = [item for item in document["output"] if item["type"] != "reasoning"]
            return Answer(call, kept, (*counts, usage.get("output_tokens")))
        case _:
            message = document["choices"][0]["message"]
            uses = message.get("tool_calls") or []
            call = None
            if uses:
                call = (uses[0]["id"], json.loads(uses[0]["function"]["arguments"]))
            details = usage.get("prompt_tokens_details") or {}
            counts = (usage.get("prompt_tokens"), details.get("cached_tokens"))
            return Answer(call, message, (*counts, usage.get("completion_tokens")))


def main(mode: Mapping[str, float]) -> int:
    """The process; 2 where its provider's variables are not there."""
    key, base = PROVIDERS.get(os.environ.get("BUZZ_AGENT_PROVIDER", ""), ("", ""))
    for name in ("BUZZ_AGENT_PROVIDER", "BUZZ_AGENT_MODEL", key, base):
        if not os.environ.get(name):
            sys.stderr.write(f"buzz-agent: {name or 'the provider'} is not set\n")
            return 2
    serve(Agent(os.environ, mode).methods())
    return 0
