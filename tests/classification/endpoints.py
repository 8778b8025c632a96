"""Model endpoints that fail, each in its own way: small servers on sockets of this machine."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from tests.workers.trial.stage import shell_call
from workers.contract.endpoint import Endpoint

Answer = Callable[[int], Awaitable[bytes | None]]
"""From a request's number, from 1, to the bytes of the answer; None: never any."""

REQUEST_S = 30.0


@asynccontextmanager
async def answering(answer: Answer) -> AsyncIterator[Endpoint]:
    """An endpoint that answers like this, and closes the connection after each answer."""
    requests = 0
    waiting: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal requests
        task = asyncio.current_task()
        assert task is not None
        waiting.add(task)
        try:
            await _read_request(reader)
            requests += 1
            data = await answer(requests)
            if data is None:
                await reader.read()  # until the other side goes
                return
            writer.write(data)
            await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            return  # the other side has gone
        finally:
            waiting.discard(task)
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()[:2]
    try:
        yield Endpoint(provider="scripted", base_url=f"http://{host}:{port}/v1")
    finally:
        server.close()
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(server.wait_closed(), REQUEST_S)


async def _read_request(reader: asyncio.StreamReader) -> None:
    async with asyncio.timeout(REQUEST_S):
        head = await reader.readuntil(b"\r\n\r\n")
        for line in head.lower().split(b"\r\n"):
            if line.startswith(b"content-length:"):
                await reader.readexactly(int(line.partition(b":")[2]))


def http(status: str, body: bytes) -> bytes:
    """A whole HTTP answer with a JSON body."""
    head = f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode() + body


def always(status: str, body: bytes = b'{"error": {"message": "no"}}') -> Answer:
    """Says the same every time."""

    async def answer(_: int) -> bytes:
        return http(status, body)

    return answer


async def silent(_: int) -> None:
    """Takes every request, and never says a word."""


async def closing(_: int) -> bytes:
    """Closes the connection in place of an answer."""
    return b""


def recovering(failures: int, seconds: float, command: str) -> Answer:
    """Fails so many times, each after some seconds, and works from then on."""

    async def answer(number: int) -> bytes:
        if number <= failures:
            await asyncio.sleep(seconds)
            return http("503 Service Unavailable", b'{"error": {"message": "overloaded"}}')
        return http("200 OK", json.dumps(shell_call(command)).encode())

    return answer
