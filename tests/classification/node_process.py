"""A node in a process of its own that is told what to do by lines of JSON, as by Ray.

Calls come as ``[number, method, arguments]`` on standard input; answers go out as
``[number, value]``. The end of the input is the end of the node.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

from workers.actor import NodeActor

CLOSE_S = 30.0
LINE_BYTES = 64 * 1024 * 1024


async def main() -> None:
    """Serves calls until there are no more."""
    actor = NodeActor()
    reader = asyncio.StreamReader(limit=LINE_BYTES)
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    running: set[asyncio.Task[None]] = set()
    while line := await reader.readline():
        task = asyncio.create_task(_serve(actor, *json.loads(line)))
        running.add(task)
        task.add_done_callback(running.discard)
    await actor.close(CLOSE_S)


async def _serve(actor: NodeActor, number: int, method: str, arguments: list[Any]) -> None:
    value = await getattr(actor, method)(*arguments)
    sys.stdout.write(f"{json.dumps([number, value])}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(main())
