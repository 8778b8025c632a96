"""The relay of a trial: Buzz on the wire, and the client that the harness speaks to one with.

* ``server``: ``EmbeddedRelay``, aiohttp around the rest; ``door``, ``websocket``, ``outbox``,
  ``pulse``, ``replying``
* ``session`` and ``bridge``: message in, replies out; ``authentication``, ``information``
* ``core``: one relay without sockets; ``state``, ``store``, ``groups``, ``hub``
* ``ingest``, ``rules``, ``commands``, ``directs``, ``announcer``: what is accepted, and what
  follows
* ``query``, ``search``, ``visibility``: what is shown to whom
* ``event_file``, ``replay``: a relay that outlives its process
* ``client``: ``RelayClient``, against this relay and any Buzz relay alike
"""

from workers.relay.client import Published, RelayClient
from workers.relay.errors import RelayError, RelayRefusedError, RelayUnreachableError
from workers.relay.event_file import EventFile, EventFileError
from workers.relay.server import EmbeddedRelay

__all__ = [
    "EmbeddedRelay",
    "EventFile",
    "EventFileError",
    "Published",
    "RelayClient",
    "RelayError",
    "RelayRefusedError",
    "RelayUnreachableError",
]
