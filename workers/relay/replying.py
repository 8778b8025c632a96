"""JSON answers over HTTP, in pieces and in bounded time."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator

from aiohttp import web

from workers.nostr import strict_json

PIECE_CHARS = 64 * 1024


async def send_json(
    request: web.Request, status: int, value: object, within_s: float
) -> web.StreamResponse:
    """Sends a JSON answer whole; a client that does not take it in time is cut off.

    A long list goes out in pieces whose text is made one at a time, so that a reader however
    slow holds one piece of memory, and a large page does not hold up the node's other trials.
    """
    pieces = json_pieces(value) if isinstance(value, list) else iter((strict_json.dump(value),))
    head, following = next(pieces), next(pieces, None)
    response: web.StreamResponse
    if following is None:
        response = web.json_response(text=head, status=status)
    else:
        response = web.StreamResponse(status=status)
        response.content_type, response.charset = "application/json", "utf-8"
    try:
        async with asyncio.timeout(within_s):
            await response.prepare(request)
            if following is not None:
                for piece in (head, following, *pieces):
                    await response.write(piece.encode())
            await response.write_eof()
    except TimeoutError:
        if request.transport is not None:
            request.transport.abort()
    return response


def json_pieces(rows: Iterable[object]) -> Iterator[str]:
    """The text of a JSON array, in pieces of about ``PIECE_CHARS``."""
    waiting, size, separator = ["["], 1, ""
    for row in rows:
        text = strict_json.dump(row)
        waiting.append(separator + text)
        size, separator = size + len(text), ","
        if size >= PIECE_CHARS:
            yield "".join(waiting)
            waiting, size = [], 0
    yield "".join((*waiting, "]"))
