"""The relay of a trial: Buzz on the wire, and the client that the harness speaks to one with.

* ``server``: ``EmbeddedRelay``, aiohttp around the rest; ``websocket``, ``outbox``
* ``session`` and ``bridge``: message in, replies out; ``authentication``, ``information``
* ``core``: one relay without sockets; ``state``, ``store``, ``groups``, ``hub``
* ``ingest``, ``rules``, ``commands``, ``announcer``: what is accepted, and what follows
* ``query``, ``search``, ``visibility``: what is shown to whom
* ``client``: ``RelayClient``, against this relay and any Buzz relay alike
"""

from workers.relay.client import Published, RelayClient
from workers.relay.errors import RelayError, RelayRefusedError, RelayUnreachableError
from workers.relay.server import EmbeddedRelay

__all__ = [
    "EmbeddedRelay",
    "Published",
    "RelayClient",
    "RelayError",
    "RelayRefusedError",
    "RelayUnreachableError",
]
