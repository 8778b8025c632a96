"""One request's way through the gateway: admitted or refused, forwarded, metered, noted."""

from __future__ import annotations

import asyncio
import time
from contextlib import aclosing, suppress

from aiohttp import web

from workers.contract.budget import Spending
from workers.contract.endpoint import Dialect
from workers.gateway.account import Credentials
from workers.gateway.desk import Desk, Permit, Seat
from workers.gateway.errors import UpstreamError
from workers.gateway.headers import (
    is_sendable,
    response_headers,
    retry_of,
    token_of,
    upstream_headers,
)
from workers.gateway.ledger import REFUSALS, CallResult, LedgerLine
from workers.gateway.limits import GatewayLimits
from workers.gateway.meter import Charge, cost_usd, most, spent, uncached_cost_usd
from workers.gateway.reading import Tokens
from workers.gateway.refusal import (
    Refusal,
    budget_refusal,
    refusal_body,
    route_refusal,
    sweep_budget_refusal,
    token_refusal,
    unreachable_refusal,
)
from workers.gateway.route import (
    Asked,
    dialect_of,
    read_request,
    result_of_status,
    upstream_url,
)
from workers.gateway.secret import Scrubber, scrub
from workers.gateway.stream_usage import UsageHider, with_usage
from workers.gateway.upstream import Answer
from workers.gateway.usage import UsageReader

FINISH_CHARS = 64
"""Of the word why the model stopped, as the ledger has it."""
_NOTHING = Tokens(0, 0, 0)
_UNBILLED = frozenset({CallResult.RATE_LIMITED, CallResult.PROVIDER_AUTH, CallResult.CLIENT_ERROR})
"""A provider's refusals before any work; what a 5xx has cost is unknown."""


class Call:
    """One request; ``answer`` serves it and leaves its line in the ledger."""

    def __init__(self, desk: Desk, request: web.BaseRequest, now: float) -> None:
        desk.requests += 1
        desk.last_activity = now
        self._desk = desk
        self._request = request
        self._number = desk.requests
        self._started = now
        self._headers = list(request.headers.items())
        self._dialect: Dialect | None = dialect_of(request.path)
        self._seat: Seat | None = None
        self._asked: Asked | None = None
        self._status: int | None = None
        self._result = CallResult.CUT
        self._tokens = _NOTHING
        self._finish: str | None = None
        self._assumed: Charge | None = None
        self._counted = False
        """Whether the sweep's budget counts it as a call."""
        self._forwarded_at: float | None = None
        self._held: tuple[float, float | None] | None = None
        """From when to when it waited for a permit; null: it still does."""
        self._noted = False

    async def answer(self) -> web.StreamResponse:
        """Serves the request to its end, whatever that is."""
        try:
            admitted = await self._admit()
            if isinstance(admitted, Refusal):
                return await self._refuse(admitted)
            seat, asked, body, assumed = admitted
            why = await self._desk.purse.admit(self._desk.try_)
            if why is not None:
                return await self._refuse(sweep_budget_refusal(why))
            self._counted = True
            who = f"{self._desk.try_}/{seat.access.agent}"
            arrived = time.monotonic()
            self._held = (arrived, None)
            async with self._desk.permits.permit(seat.account, assumed, who) as permit:
                self._held = (arrived, time.monotonic())
                try:
                    return await self._forward(seat, asked, body, permit)
                finally:
                    permit.used(self._tokens.input, self._tokens.output)
        finally:
            self.note()

    async def _admit(self) -> tuple[Seat, Asked, bytes, Charge] | Refusal:
        seat = self._seat = self._desk.seats.get(token_of(self._headers) or "")
        if seat is None:
            return token_refusal()
        dialect = self._dialect
        if dialect is None or self._request.method != "POST":
            return route_refusal(404, "expected POST of chat/completions, responses or messages")
        if "Content-Encoding" in self._request.headers:
            return route_refusal(415, "the body must not be compressed")
        body = await self._read_body()
        if isinstance(body, Refusal):
            return body
        asked = read_request(dialect, body, seat.model, self._request.path)
        if isinstance(asked, Refusal):
            return asked
        if (spent_up := await self._room(seat)) is not None:
            return spent_up
        assumed = most(seat.access.prices, len(body), asked.max_output_tokens)
        for _, meter in seat.meters:
            meter.hold(self._number, assumed)
        self._asked, self._assumed = asked, assumed
        return seat, asked, body, assumed

    async def _room(self, seat: Seat) -> Refusal | None:
        """Waits for room in the agent's budgets; a refusal if one of them is spent."""
        while True:
            for owner, meter in seat.meters:
                if (limit := meter.reached()) is not None:
                    return budget_refusal(owner, limit)
            if not any(meter.is_full for _, meter in seat.meters):
                return None
            await self._desk.next_settled()

    async def _read_body(self) -> bytes | Refusal:
        limits = self._desk.limits
        if self._request.headers.get("Expect", "").lower() == "100-continue":
            # RFC 9110 §10.1.1; said only to whom has a token.
            await self._request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            self._request.writer.output_size = 0
        body = bytearray()
        try:
            async with asyncio.timeout(limits.body_s):
                async for piece in self._request.content.iter_any():
                    body += piece
                    if len(body) > limits.request_bytes:
                        return route_refusal(413, f"the body is over {limits.request_bytes} bytes")
        except TimeoutError:
            return route_refusal(408, f"the body took over {limits.body_s:g} s")
        except (web.RequestPayloadError, ConnectionError):
            return route_refusal(400, "the body broke off")
        return bytes(body)

    async def _forward(
        self, seat: Seat, asked: Asked, body: bytes, permit: Permit
    ) -> web.StreamResponse:
        account = seat.account
        endpoint = account.endpoint
        query = self._request.rel_url.raw_query_string
        url = upstream_url(endpoint, asked.dialect, query, asked.model)
        credentials = account.credentials()
        token = token_of(self._headers) or ""
        passing = [(name, value) for name, value in self._headers if token not in value]
        headers = upstream_headers(passing, endpoint, credentials.key, credentials.headers)
        asking = None
        if endpoint.stream_usage and asked.streamed and asked.dialect == "chat":
            asking = with_usage(body)
        self._tokens = Tokens()
        self._forwarded_at = time.monotonic()
        status: int | None = None
        try:
            async with self._desk.upstream.post(url, headers, asking or body, account) as answer:
                status = self._status = answer.status
                permit.answered(status, answer.headers)
                if answer.is_packed:
                    return await self._refuse(self._unreadable(status))
                if (answer.length or 0) > self._desk.limits.response_bytes:
                    return await self._refuse(_too_long(self._desk.limits))
                hider = UsageHider() if asking is not None and answer.is_stream else None
                return await self._pass_on(asked, answer, credentials, hider)
        except UpstreamError as error:
            if status is None:
                permit.answered(None, [])
            return await self._refuse(unreachable_refusal(str(error)))

    async def _pass_on(
        self, asked: Asked, answer: Answer, credentials: Credentials, hider: UsageHider | None
    ) -> web.StreamResponse:
        """Hands the answer to the agent as it comes, reading its usage beside it."""
        secrets = credentials.secrets
        reason = scrub(answer.reason or "", secrets)
        response = web.StreamResponse(
            status=answer.status, reason=reason if reason and is_sendable(reason) else None
        )
        for name, value in response_headers(answer.headers, secrets):
            if hider is None or name.lower() != "content-length":
                response.headers.add(name, value)
        result = result_of_status(answer.status)
        # Some servers stream without saying so.
        reader = UsageReader(
            asked.dialect, is_stream=answer.is_stream or (asked.streamed and not answer.is_json)
        )
        scrubber = Scrubber(secrets)
        fault: CallResult | None = CallResult.CUT
        try:
            await response.prepare(self._request)
            fault = await self._copy(answer, response, reader, scrubber, hider)
        except UpstreamError:
            fault = CallResult.PROVIDER_UNREACHABLE
        except ConnectionError:
            pass  # The agent has gone.
        finally:
            self._conclude(result, fault, reader, credentials)
        if fault is None:
            # Noted first: an agent that has its answer may ask again at once.
            self.note()
            rest = scrubber.flush()
            with suppress(ConnectionError):  # The agent may have gone by now.
                await response.write_eof(
                    rest if hider is None else hider.feed(rest) + hider.flush()
                )
        elif self._request.transport is not None:
            # An end that is none must not look like one.
            self._request.transport.close()
        return response

    async def _copy(
        self,
        answer: Answer,
        response: web.StreamResponse,
        reader: UsageReader,
        scrubber: Scrubber,
        hider: UsageHider | None,
    ) -> CallResult | None:
        """Copies the body; what went wrong with it."""
        size = 0
        async with aclosing(answer.pieces()) as pieces:
            async for piece in pieces:
                size += len(piece)
                if size > self._desk.limits.response_bytes:
                    return CallResult.PROVIDER_MALFORMED
                self._desk.last_activity = time.monotonic()
                reader.feed(piece)
                passed = scrubber.feed(piece)
                if hider is not None:
                    passed = hider.feed(passed)
                if passed:
                    await response.write(passed)
        return None

    def _conclude(
        self,
        result: CallResult,
        fault: CallResult | None,
        reader: UsageReader,
        credentials: Credentials,
    ) -> None:
        """Settles result, tokens and finish of an answer, whole or not."""
        if result is not CallResult.OK:
            self._result = result
            self._tokens = _NOTHING if result in _UNBILLED else Tokens()
            return
        reading = reader.close() if fault is None else reader.so_far()
        self._result = fault or reading.fault or CallResult.OK
        self._tokens = reading.tokens
        if self._result in _UNBILLED and reader.events <= 1 and reading.tokens == Tokens():
            self._tokens = _NOTHING  # It stands in an answer's place.
        if reading.finish is not None:
            # Cut last: of a key that was cut before, the beginning would not be known.
            self._finish = scrub(reading.finish, credentials.secrets)[:FINISH_CHARS]

    def _unreadable(self, status: int) -> Refusal:
        """An answer that could hide a key, and whose usage is not to be read, is not passed on."""
        result = result_of_status(status)
        if result in _UNBILLED:
            self._tokens = _NOTHING
        if result in (CallResult.OK, CallResult.PROVIDER_MALFORMED):
            status, result = 502, CallResult.PROVIDER_MALFORMED
        message = "the provider's answer is compressed in a way that was not asked for"
        return Refusal(status, result, "api_error", message)

    async def _refuse(self, refusal: Refusal) -> web.StreamResponse:
        self._result = refusal.result
        if refusal.result in REFUSALS:
            self._status = refusal.status
        self.note()
        return web.Response(
            status=refusal.status,
            body=refusal_body(self._dialect, refusal),
            content_type="application/json",
        )

    def note(self) -> None:
        """Settles the budgets and writes the line; once, whoever comes first."""
        if self._noted:
            return
        self._noted = True
        desk, seat, now = self._desk, self._seat, time.monotonic()
        desk.last_activity = now
        cost = cost_usd(seat.access.prices, self._tokens) if seat is not None else 0.0
        counted: Spending | None = None
        if seat is not None and self._assumed is not None:
            charge = spent(self._result, self._tokens, cost, self._assumed)
            if self._result is CallResult.CUT and self._forwarded_at is None:
                charge = Charge()  # We held it back: no call of the agent's.
            for _, meter in seat.meters:
                meter.settle(self._number, charge)
            desk.has_settled()
            if self._counted:
                counted = charge.as_spending(calls=1)
                desk.purse.charge(desk.try_, counted)
        if self._result in REFUSALS:
            desk.refusals += 1
            if desk.refusals > desk.limits.refusals:
                return
        desk.ledger.add(self._line(seat, now, cost, counted))

    def _held_s(self, now: float) -> float:
        if self._held is None:
            return 0.0
        start, end = self._held
        return round((now if end is None else end) - start, 6)

    def _line(
        self, seat: Seat | None, now: float, cost: float | None, counted: Spending | None
    ) -> LedgerLine:
        tokens = self._tokens
        return LedgerLine(
            request=self._number,
            agent=seat.access.agent if seat is not None else None,
            endpoint=seat.access.endpoint if seat is not None else None,
            dialect=self._dialect,
            model=self._asked.model if self._asked is not None else None,
            started_s=round(self._started - self._desk.opened, 6),
            seconds=round(now - self._started, 6),
            forwarded=self._forwarded_at is not None,
            waited_s=round((self._forwarded_at or now) - self._started, 6),
            held_s=self._held_s(now),
            status=self._status,
            result=self._result,
            input_tokens=tokens.input,
            cached_input_tokens=tokens.cached,
            cache_write_tokens=tokens.cache_write,
            output_tokens=tokens.output,
            reasoning_tokens=tokens.reasoning,
            cost_usd=cost,
            uncached_cost_usd=(
                uncached_cost_usd(seat.access.prices, tokens) if seat is not None else 0.0
            ),
            counted=counted,
            streamed=self._asked is not None and self._asked.streamed,
            retry=retry_of(self._headers),
            finish=self._finish,
        )


def _too_long(limits: GatewayLimits) -> Refusal:
    return Refusal(
        502,
        CallResult.PROVIDER_MALFORMED,
        "api_error",
        f"the provider's answer is over {limits.response_bytes} bytes",
    )
