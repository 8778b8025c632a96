"""An endpoint as a node reaches it: its keys, its headers, its proxy, whom it trusts."""

from __future__ import annotations

import ipaddress
import re
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from workers.contract.endpoint import Endpoint
from workers.gateway.errors import GatewayError
from workers.gateway.headers import Headers
from workers.gateway.secret import Secret, SecretSource

_WITH_PORT = re.compile(r"(?P<host>\[[^\[\]]+\]|[^:\[\]]+):(?P<port>[0-9]{1,5})")
"""An address of version 6 has its port only behind brackets."""

LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


@dataclass(frozen=True)
class Credentials:
    """What one request is sent with."""

    key: Secret | None
    headers: Headers
    secrets: tuple[Secret, ...]
    """All of them, to be blanked in the answer."""


class Account:
    """An endpoint with all that a request to it needs."""

    def __init__(self, name: str, endpoint: Endpoint, environment: Mapping[str, str]) -> None:
        """Reads keys and certificates.

        Raises:
            GatewayError: a file of a key or of certificates cannot be read.
        """
        self.name = name
        self.endpoint = endpoint
        self.proxy = proxy_of(endpoint, environment)
        self.tls = None if endpoint.ca_bundle is None else _trusting(name, endpoint.ca_bundle)
        self._sources = {each: SecretSource(each, environment) for each in endpoint.secret_names}

    def credentials(self) -> Credentials:
        """As they are now: keys may rotate."""
        endpoint = self.endpoint
        found = {name: source.current() for name, source in self._sources.items()}
        extra = list(endpoint.extra_headers.items())
        extra += [
            (header, secret.reveal())
            for header, name in endpoint.extra_headers_env.items()
            if (secret := found[name]) is not None
        ]
        key = None if endpoint.api_key_env is None else found[endpoint.api_key_env]
        secrets = tuple(secret for secret in found.values() if secret is not None)
        return Credentials(key, extra, secrets)

    def missing(self) -> str | None:
        """What keeps it from being used; None: nothing."""
        if self.endpoint.upstream is None:
            return f"endpoint {self.name!r} has no base_url"
        for name, source in self._sources.items():
            if source.current() is None:
                what = "its key" if name == self.endpoint.api_key_env else "a header's value"
                return (
                    f"endpoint {self.name!r} needs {what} in the variable {name}, or in the file "
                    f"that {name}_FILE names"
                )
        return None


def proxy_of(endpoint: Endpoint, environment: Mapping[str, str]) -> str | None:
    """The URL of the proxy to use; None: none.

    The environment is read as curl reads it: ``https_proxy``, ``http_proxy``, ``all_proxy`` and
    ``no_proxy``, small or large. It is not asked for this machine's own loopback, where the
    scripted endpoint is.

    Raises:
        GatewayError: the environment names a proxy of another kind.
    """
    if endpoint.proxy is not None:
        return None if endpoint.proxy == "none" else endpoint.proxy
    base = urlsplit(endpoint.upstream or "")
    host = base.hostname or ""
    names = (f"{base.scheme}_proxy", "all_proxy")
    name = next((each for each in names if _either(environment, each)), None)
    if name is None or host in LOOPBACK:
        return None
    port = base.port or (443 if base.scheme == "https" else 80)
    if any(_matches(host, port, each) for each in _listed(environment, "no_proxy")):
        return None
    found = _either(environment, name)
    url = found if "://" in found else f"http://{found}"
    if not _is_http(url):
        # The value may hold a password.
        raise GatewayError(f"{name} names a proxy that is none of http:// or https://")
    return url


def _either(environment: Mapping[str, str], name: str) -> str:
    return environment.get(name) or environment.get(name.upper()) or ""


def _listed(environment: Mapping[str, str], name: str) -> list[str]:
    return _either(environment, name).replace(",", " ").split()


def _is_http(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def _matches(host: str, port: int, entry: str) -> bool:
    """Whether an entry of ``no_proxy`` is this host, a domain above it, or its network."""
    if entry == "*":
        return True
    if (found := _WITH_PORT.fullmatch(entry)) is not None:
        if int(found["port"]) != port:
            return False
        entry = found["host"]
    entry = entry.strip("[]")
    try:
        return ipaddress.ip_address(host) in ipaddress.ip_network(entry, strict=False)
    except ValueError:
        pass  # One of them is a name.
    domain = entry.lower().lstrip("*").strip(".")
    return bool(domain) and (host == domain or host.endswith(f".{domain}"))


def _trusting(name: str, bundle: str) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=bundle)
    except OSError as error:  # An SSLError is one too.
        raise GatewayError(
            f"endpoint {name!r}: the certificates of ca_bundle {bundle} cannot be read "
            f"({error.strerror or type(error).__name__})"
        ) from error
