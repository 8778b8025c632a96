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
* ``interface``: ``TrialRelay``, what a trial needs of its relay
* ``health``: ``look_at``, whether a deployment can be used
* ``external``: ``ExternalRelay``, a deployment as one trial's relay; ``forwarder`` carries the
  agents' bytes, ``feed`` and ``link`` watch the trial's channel
"""

from workers.relay.client import Published, RelayClient
from workers.relay.errors import RelayError, RelayRefusedError, RelayUnreachableError
from workers.relay.event_file import EventFile, EventFileError
from workers.relay.external import ExternalRelay
from workers.relay.health import UnfitRelayError, look_at
from workers.relay.interface import TrialRelay
from workers.relay.server import EmbeddedRelay

__all__ = [
    "EmbeddedRelay",
    "EventFile",
    "EventFileError",
    "ExternalRelay",
    "Published",
    "RelayClient",
    "RelayError",
    "RelayRefusedError",
    "RelayUnreachableError",
    "TrialRelay",
    "UnfitRelayError",
    "look_at",
]
