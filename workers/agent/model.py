"""Calls the model by way of the gateway, with buzz-agent's retries; the door to the endpoint."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from workers.agent import http_post, journal
from workers.agent.dialect_chat import ChatDialect
from workers.agent.dialect_messages import MessagesDialect
from workers.agent.llm import Answer, AnswerError, Dialect, Entry, ModelSettings, Tool

ATTEMPTS = 3
BASE_TIMEOUT_S = 240.0
MAX_TIMEOUT_S = 1200.0
_BACKOFF_S = 0.5
_BACKOFF_CAP_S = 8.0
_RETRY_AFTER_CAP_S = 60.0
_ERROR_BYTES = 4096
_OVERFLOW_WORDS = (
    "context_length_exceeded",
    "context length",
    "context window",
    "prompt is too long",
    "maximum context",
)

DIALECTS: dict[str, Dialect] = {"chat": ChatDialect(), "messages": MessagesDialect()}


class ModelError(Exception):
    """No usable answer; the message says what the endpoint said, after how many attempts."""


class ContextOverflow(ModelError):
    """The endpoint says that the conversation is longer than the model's window."""


class _Again(Exception):
    """This attempt failed in a way that another one may not."""

    def __init__(self, reason: str, *, timeout: bool = False, wait_s: float = 0.0) -> None:
        super().__init__(reason)
        self.timeout = timeout
        self.wait_s = wait_s


@dataclass(frozen=True)
class Model:
    """One agent's access to its model."""

    settings: ModelSettings
    dialect: Dialect
    gateway_url: str
    token: str = field(repr=False)
    sleep: Callable[[float], None] = time.sleep
    jitter: Callable[[], float] = random.random

    def ask(self, system: str, history: Sequence[Entry], tools: Sequence[Tool]) -> Answer:
        """One answer to the conversation so far.

        Raises:
            ContextOverflow: the conversation is too long.
            ModelError: refused, or three attempts failed.
        """
        body = json.dumps(
            self.dialect.body(self.settings, system, history, tools), ensure_ascii=False
        ).encode("utf-8", "replace")
        start = time.monotonic()
        timeout_s = BASE_TIMEOUT_S
        attempt = 0
        while True:
            attempt += 1
            try:
                answer = self._attempt(body, attempt, timeout_s)
            except _Again as again:
                journal.write(f"llm: ({self.settings.model}) attempt {attempt}: {again}")
                if attempt == ATTEMPTS:
                    seconds = time.monotonic() - start
                    raise ModelError(
                        f"llm: ({self.settings.model}) {again}; "
                        f"{ATTEMPTS} attempts in {seconds:.1f} s"
                    ) from again
                if again.timeout:
                    timeout_s = min(timeout_s * 2, MAX_TIMEOUT_S)
                self.sleep(again.wait_s or self._backoff(attempt))
            else:
                self._log(answer, time.monotonic() - start)
                return answer

    def _backoff(self, attempt: int) -> float:
        """0.5 s, 1 s, 2 s … times a half to one, at most 8 s."""
        return min(_BACKOFF_S * 2.0 ** (attempt - 1) * (0.5 + self.jitter() / 2), _BACKOFF_CAP_S)

    def _attempt(self, body: bytes, attempt: int, timeout_s: float) -> Answer:
        headers = {
            "Content-Type": "application/json",
            "x-stainless-retry-count": str(attempt - 1),
            **self.dialect.headers(self.token),
        }
        try:
            response = http_post.post(
                self.gateway_url + self.dialect.path, headers, body, timeout_s=timeout_s
            )
        except http_post.HttpError as error:
            if error.fault == "too_large":
                raise ModelError(f"llm: ({self.settings.model}) {error}") from error
            raise _Again(str(error), timeout=error.fault == "timeout") from error
        if not 200 <= response.status < 300:
            raise self._refusal(response)
        try:
            return self.dialect.answer(json.loads(response.body))
        except ValueError as error:
            raise _Again("the answer is not JSON") from error
        except RecursionError as error:
            raise _Again("the answer is nested too deeply") from error
        except AnswerError as error:
            raise _Again(str(error)) from error

    def _refusal(self, response: http_post.Response) -> Exception:
        """What an answer that is no success means."""
        text = response.body[:_ERROR_BYTES].decode(errors="replace")
        reason = f"status {response.status}: {text}"
        if response.status in (429, 499) or response.status >= 500:
            return _Again(reason, wait_s=self._retry_after(response))
        if response.status == 400 and any(word in text.lower() for word in _OVERFLOW_WORDS):
            return ContextOverflow(f"llm: ({self.settings.model}) {reason}")
        return ModelError(f"llm: ({self.settings.model}) {reason}")

    def _retry_after(self, response: http_post.Response) -> float:
        """Buzz heeds the header for OpenRouter only."""
        text = response.headers.get("retry-after", "")
        if self.settings.provider != "openrouter" or not text.isdigit():
            return 0.0
        return min(float(text), _RETRY_AFTER_CAP_S)

    def _log(self, answer: Answer, seconds: float) -> None:
        usage = answer.usage
        journal.write(
            f"llm: call completed model={self.settings.model} "
            f"provider={self.settings.provider} duration_ms={int(seconds * 1000)} "
            f"input_tokens={usage.input_tokens} cached_input_tokens={usage.cached_tokens} "
            f"output_tokens={usage.output_tokens} stop={answer.stop.value}"
        )
