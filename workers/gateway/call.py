"""One request's way through the gateway: admitted or refused, forwarded, metered, noted."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from contextlib import aclosing
from dataclasses import dataclass, field

from aiohttp import web

from workers.contract.endpoint import Dialect, Endpoint
from workers.gateway.errors import UpstreamError
from workers.gateway.headers import response_headers, retry_of, token_of, upstream_headers
from workers.gateway.ledger import REFUSALS, CallResult, Ledger, LedgerLine
from workers.gateway.limits import GatewayLimits
from workers.gateway.meter import AgentAccess, Charge, Meter, cost_usd, most, spent
from workers.gateway.reading import Tokens
from workers.gateway.refusal import (
    Refusal,
    budget_refusal,
    refusal_body,
    route_refusal,
    token_refusal,
    unreachable_refusal,
)
from workers.gateway.route import (
    Asked,
    dialect_of,
    model_of,
    read_request,
    result_of_status,
    upstream_url,
)
from workers.gateway.secret import Scrubber, Secret, scrub
from workers.gateway.upstream import Answer, Upstream
from workers.gateway.usage import UsageReader

_NOTHING = Tokens(0, 0, 0)
_UNBILLED = frozenset({CallResult.RATE_LIMITED, CallResult.PROVIDER_AUTH, CallResult.CLIENT_ERROR})
"""A provider's refusals before any work; what a 5xx has cost is unknown."""


@dataclass(frozen=True)
class Seat:
    """An agent's place at the gateway."""

    access: AgentAccess
    endpoint: Endpoint
    key: Secret | None = field(repr=False)
    meters: tuple[tuple[str, Meter], ...]
    """The budgets that bind it, each with its owner's name."""

    @property
    def model(self) -> str:
        """The model name that its requests must carry."""
        return model_of(self.access.endpoint, self.endpoint)


class Desk:
    """What the requests of a trial share."""

    def __init__(
        self,
        seats: Mapping[str, Seat],
        ledger: Ledger,
        upstream: Upstream,
        limits: GatewayLimits,
    ) -> None:
        self.seats = seats
        """By token."""
        self.ledger = ledger
        self.upstream = upstream
        self.limits = limits
        self.opened = self.last_activity = time.monotonic()
        self.requests = 0
        self.refusals = 0


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
        self._noted = False

    async def answer(self) -> web.StreamResponse:
        """Serves the request to its end, whatever that is."""
        try:
            admitted = await self._admit()
            if isinstance(admitted, Refusal):
                return await self._refuse(admitted)
            return await self._forward(*admitted)
        finally:
            self._note()

    async def _admit(self) -> tuple[Seat, Asked, bytes] | Refusal:
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
        asked = read_request(dialect, body, seat.model)
        if isinstance(asked, Refusal):
            return asked
        for owner, meter in seat.meters:
            if (limit := meter.reached()) is not None:
                return budget_refusal(owner, limit)
        assumed = most(seat.access.prices, len(body), asked.max_output_tokens)
        for _, meter in seat.meters:
            meter.hold(self._number, assumed)
        self._asked, self._assumed = asked, assumed
        return seat, asked, body

    async def _read_body(self) -> bytes | Refusal:
        limits = self._desk.limits
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

    async def _forward(self, seat: Seat, asked: Asked, body: bytes) -> web.StreamResponse:
        url = upstream_url(seat.endpoint, asked.dialect, self._request.rel_url.raw_query_string)
        headers = upstream_headers(self._headers, seat.endpoint.provider, seat.key)
        self._tokens = Tokens()
        try:
            async with self._desk.upstream.post(url, headers, body) as answer:
                self._status = answer.status
                if (answer.length or 0) > self._desk.limits.response_bytes:
                    return await self._refuse(_too_long(self._desk.limits))
                return await self._pass_on(seat, asked, answer)
        except UpstreamError as error:
            return await self._refuse(unreachable_refusal(str(error)))

    async def _pass_on(self, seat: Seat, asked: Asked, answer: Answer) -> web.StreamResponse:
        """Hands the answer to the agent as it comes, reading its usage beside it."""
        reason = scrub(answer.reason or "", seat.key) or None
        response = web.StreamResponse(status=answer.status, reason=reason)
        for name, value in response_headers(answer.headers, seat.key):
            response.headers.add(name, value)
        result = result_of_status(answer.status)
        reader = UsageReader(asked.dialect, is_stream=answer.is_stream)
        scrubber = Scrubber(seat.key)
        fault: CallResult | None = CallResult.CUT
        try:
            await response.prepare(self._request)
            fault = await self._copy(answer, response, reader, scrubber)
        except UpstreamError:
            fault = CallResult.PROVIDER_UNREACHABLE
        except ConnectionError:
            pass  # The agent has gone.
        finally:
            self._conclude(result, fault, reader, seat)
        if fault is None:
            # Noted first: an agent that has its answer may ask again at once.
            self._note()
            await response.write_eof(scrubber.flush())
        elif self._request.transport is not None:
            # An end that is none must not look like one.
            self._request.transport.close()
        return response

    async def _copy(
        self, answer: Answer, response: web.StreamResponse, reader: UsageReader, scrubber: Scrubber
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
                if passed := scrubber.feed(piece):
                    await response.write(passed)
        return None

    def _conclude(
        self, result: CallResult, fault: CallResult | None, reader: UsageReader, seat: Seat
    ) -> None:
        """Settles result, tokens and finish of an answer, whole or not."""
        if result is not CallResult.OK:
            self._result = result
            self._tokens = _NOTHING if result in _UNBILLED else Tokens()
            return
        reading = reader.close() if fault is None else reader.so_far()
        self._result = fault or reading.fault or CallResult.OK
        self._tokens = reading.tokens
        self._finish = None if reading.finish is None else scrub(reading.finish, seat.key)

    async def _refuse(self, refusal: Refusal) -> web.StreamResponse:
        self._result = refusal.result
        if refusal.result in REFUSALS:
            self._status = refusal.status
        self._note()
        return web.Response(
            status=refusal.status,
            body=refusal_body(self._dialect, refusal),
            content_type="application/json",
        )

    def _note(self) -> None:
        """Settles the budgets and writes the line; once."""
        if self._noted:
            return
        self._noted = True
        seat, now = self._seat, time.monotonic()
        self._desk.last_activity = now
        cost = cost_usd(seat.access.prices, self._tokens) if seat is not None else 0.0
        if seat is not None and self._assumed is not None:
            charge = spent(self._result, self._tokens, cost, self._assumed)
            for _, meter in seat.meters:
                meter.settle(self._number, charge)
        if self._result in REFUSALS:
            self._desk.refusals += 1
            if self._desk.refusals > self._desk.limits.refusals:
                return
        self._desk.ledger.add(self._line(seat, now, cost))

    def _line(self, seat: Seat | None, now: float, cost: float | None) -> LedgerLine:
        return LedgerLine(
            request=self._number,
            agent=seat.access.agent if seat is not None else None,
            endpoint=seat.access.endpoint if seat is not None else None,
            dialect=self._dialect,
            model=self._asked.model if self._asked is not None else None,
            started_s=round(self._started - self._desk.opened, 6),
            seconds=round(now - self._started, 6),
            status=self._status,
            result=self._result,
            input_tokens=self._tokens.input,
            cached_input_tokens=self._tokens.cached,
            output_tokens=self._tokens.output,
            cost_usd=cost,
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
