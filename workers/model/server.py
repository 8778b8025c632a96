"""The scripted endpoint: the shell around the scripts."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from aiohttp import web

from workers.contract.endpoint import Dialect
from workers.model import wording
from workers.model.conversation import Conversation, ConversationError, read_conversation
from workers.model.play import Run, Say, next_move, read_output
from workers.model.profile import Profile, Service
from workers.model.profiles import PREFIX, PROFILES, profile_of
from workers.model.wake import read_wakes
from workers.model.wording import Spoken

_PATHS: dict[str, Dialect] = {
    "/chat/completions": "chat",
    "/messages": "messages",
    "/responses": "responses",
}
_BODY_BYTES = 64 * 1024 * 1024
_CHARACTERS_PER_TOKEN = 4
_CACHE_STEP = 128
NO_SHELL = "I have no shell to act with."


@dataclass
class Tally:
    """What was asked and told so far, as the endpoint itself counts it."""

    requests: int = 0
    reports: int = 0
    """Answers that were sent to their end with their usage in them."""
    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    reasoning_tokens: int = 0

    def report(self, spoken: Spoken) -> None:
        """Adds an answer's usage."""
        self.reports += 1
        self.input_tokens += spoken.input_tokens
        self.cached_tokens += spoken.cached_tokens
        self.output_tokens += spoken.output_tokens
        self.reasoning_tokens += spoken.reasoning_tokens


class ScriptedModel:
    """A provider that plays the model's part by script; an async context manager.

    It holds no state between requests but its tally, and the same request with the same seed gets
    the same answer. The name of the model selects the profile: ``scripted-solver`` and so on.
    """

    def __init__(
        self,
        *,
        seed: int = 0,
        host: str = "127.0.0.1",
        port: int = 0,
        slow_s: float = 5.0,
        event_s: float = 0.0,
    ) -> None:
        """Nothing is served yet.

        Args:
            seed: of ids, token counts and delays.
            host: the address to listen on.
            port: 0 takes a free one.
            slow_s: the mean delay of profile ``slow``; each is between half and one and a
                half of it.
            event_s: the pause after each event of a stream.
        """
        self.tally = Tally()
        self._seed = seed
        self._host = host
        self._port = port
        self._slow_s = slow_s
        self._event_s = event_s
        self._owned = AsyncExitStack()
        self._address: tuple[str, int] | None = None

    @property
    def base_url(self) -> str:
        """Where OpenAI's clients find it, ``/v1`` included; without it, Anthropic's do.

        Raises:
            RuntimeError: it is not being served.
        """
        if self._address is None:
            raise RuntimeError("the scripted model is not being served")
        host, port = self._address
        return f"http://{f'[{host}]' if ':' in host else host}:{port}/v1"

    async def __aenter__(self) -> Self:
        runner = web.AppRunner(self._application(), access_log=None, shutdown_timeout=1.0)
        await runner.setup()
        self._owned.push_async_callback(runner.cleanup)
        try:
            await web.TCPSite(runner, self._host, self._port).start()
        except OSError:
            await self._owned.aclose()
            raise
        host, port = runner.addresses[0][:2]
        self._address = (host, port)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._address = None
        await self._owned.aclose()

    def _application(self) -> web.Application:
        application = web.Application(client_max_size=_BODY_BYTES)
        for prefix in ("", "/v1"):
            for path in _PATHS:
                application.router.add_post(prefix + path, self._answer)
            application.router.add_get(prefix + "/models", self._list)
        return application

    async def _list(self, _: web.Request) -> web.Response:
        rows = [{"id": PREFIX + name, "object": "model", "owned_by": "apiary"} for name in PROFILES]
        return web.json_response({"object": "list", "data": rows})

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        self.tally.requests += 1
        dialect = _PATHS[request.path.removeprefix("/v1")]
        content = await request.read()
        try:
            document = json.loads(content)
            conversation = read_conversation(dialect, document)
        except (ConversationError, ValueError, RecursionError) as error:
            return _refuse(dialect, 400, "invalid_request_error", f"not of this dialect: {error}")
        name = str(document.get("model"))
        profile = profile_of(name)
        if profile is None:
            known = ", ".join(PREFIX + one for one in PROFILES)
            return _refuse(dialect, 404, "not_found_error", f"no model {name!r}; there are {known}")
        digest = hashlib.sha256(f"{self._seed}\0".encode() + content).hexdigest()
        spoken = speak(profile, conversation, name, digest, len(content))
        return await self._serve(request, profile, dialect, spoken, document)

    async def _serve(
        self,
        request: web.Request,
        profile: Profile,
        dialect: Dialect,
        spoken: Spoken,
        document: Mapping[str, Any],
    ) -> web.StreamResponse:
        if profile.service is Service.RATE_LIMITED:
            return _refuse(dialect, 429, "rate_limit_error", "too many requests", retry_after_s=1)
        if profile.service is Service.SLOW:
            await asyncio.sleep(self._slow_s * (0.5 + int(spoken.id[:4], 16) / 0xFFFF))
        is_broken = profile.service is Service.BROKEN
        if document.get("stream") is True:
            return await self._stream(request, dialect, spoken, document, is_broken=is_broken)
        text = json.dumps(wording.body(dialect, spoken))
        if is_broken:
            text = text[: len(text) // 2]
        else:
            self.tally.report(spoken)
        return web.Response(text=text, content_type="application/json")

    async def _stream(
        self,
        request: web.Request,
        dialect: Dialect,
        spoken: Spoken,
        document: Mapping[str, Any],
        *,
        is_broken: bool,
    ) -> web.StreamResponse:
        options = document.get("stream_options")
        with_usage = isinstance(options, Mapping) and options.get("include_usage") is True
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        pieces = list(wording.events(dialect, spoken, with_usage=with_usage))
        for piece in pieces[: len(pieces) // 2] if is_broken else pieces:
            await response.write(piece)
            if self._event_s:
                await asyncio.sleep(self._event_s)
        await response.write_eof()
        if not is_broken and (with_usage or dialect != "chat"):
            self.tally.report(spoken)
        return response


def speak(
    profile: Profile, conversation: Conversation, model: str, digest: str, request_bytes: int
) -> Spoken:
    """The profile's move in a conversation, with token counts from lengths. Pure."""
    outputs = [read_output(text) for text in conversation.outputs]
    move: Run | Say
    if conversation.shell is None:
        move = Say(NO_SHELL)
    else:
        move = next_move(profile.script(read_wakes(conversation.prompts)), outputs)
    made = move.command if isinstance(move, Run) else move.text
    given = request_bytes // _CHARACTERS_PER_TOKEN + 1
    fresh = len(conversation.last.encode(errors="replace")) // _CHARACTERS_PER_TOKEN
    cached = max(given - fresh, 0) // _CACHE_STEP * _CACHE_STEP if outputs else 0
    return Spoken(
        move=move,
        tool=conversation.shell or "",
        model=model,
        id=digest[:24],
        input_tokens=given,
        cached_tokens=cached,
        output_tokens=len(made) // _CHARACTERS_PER_TOKEN + 8 + int(digest[-1], 16),
        reasoning_tokens=int(digest[-2], 16) // 2,
    )


def _refuse(
    dialect: Dialect, status: int, kind: str, message: str, *, retry_after_s: int | None = None
) -> web.Response:
    headers = {} if retry_after_s is None else {"Retry-After": str(retry_after_s)}
    error = wording.failure(dialect, kind, message)
    return web.json_response(error, status=status, headers=headers)
