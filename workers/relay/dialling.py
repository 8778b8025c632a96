"""How a relay is connected to: at its own address, through a gateway, or over a Unix socket.

Whichever it is, the address that was given is what ``Host``, certificates and signatures name.
"""

from __future__ import annotations

import functools
import socket
import ssl
from pathlib import Path
from urllib.parse import urlsplit

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult

_PORTS = {"ws": 80, "wss": 443}
AT_ONCE = 8
"""Connections of one client."""


def port_of(url: str) -> int:
    """The port of a relay's canonical address, where it names none too."""
    parts = urlsplit(url)
    return parts.port or _PORTS[parts.scheme]


@functools.lru_cache(maxsize=1)
def trusted() -> ssl.SSLContext:
    """What this machine trusts; ``SSL_CERT_FILE`` names others."""
    return ssl.create_default_context()


class GatewayResolver(AbstractResolver):
    """Finds every name at one host and port."""

    def __init__(self, host: str, port: int) -> None:
        self._host = host
        self._port = port
        self._resolver = aiohttp.ThreadedResolver()

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """The gateway's addresses under the name that was asked for."""
        found = await self._resolver.resolve(self._host, self._port, family)
        return [{**each, "hostname": host} for each in found]

    async def close(self) -> None:
        """Ends the resolver."""
        await self._resolver.close()


def connector(unix_socket: Path | None, gateway: tuple[str, int] | None) -> aiohttp.BaseConnector:
    """A connection pool.

    Args:
        unix_socket: where to connect in place of the address's own host.
        gateway: likewise, host and port; a URL with an address for a host goes past it.
    """
    if unix_socket is not None:
        return aiohttp.UnixConnector(str(unix_socket), limit=AT_ONCE)
    if gateway is None:
        return aiohttp.TCPConnector(limit=AT_ONCE, ssl=trusted())
    return aiohttp.TCPConnector(
        limit=AT_ONCE,
        ssl=trusted(),
        resolver=GatewayResolver(*gateway),
        use_dns_cache=False,
    )
