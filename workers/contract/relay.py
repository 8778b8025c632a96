"""A Buzz deployment as the relay of a sweep's trials, and what is on record of it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from ipaddress import ip_address
from typing import Annotated, Any, Literal, NamedTuple, Self
from urllib.parse import SplitResult, urlsplit

from pydantic import Discriminator, Tag, model_validator

from workers.contract.base import Strict
from workers.contract.endpoint import VariableName

RESERVED_PORT = 3601
"""Inside an agent's container the gateway has it."""
_DEFAULT_PORTS = {"ws": 80, "wss": 443}
_LOOPBACK = ("localhost", "127.0.0.1")
_LABEL = r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?"
_NAME = re.compile(rf"(?=.{{1,253}}$)({_LABEL}\.)*(?!([0-9]+|0x[0-9a-f]*)$){_LABEL}", re.IGNORECASE)
"""A host's name. One whose last part is a number is an address in an old spelling."""


_FORM = "url must be ws://host[:port] or wss://host[:port], as RELAY_URL is"


class Place(NamedTuple):
    """Where to connect."""

    host: str
    port: int


class Deployment(Strict):
    """A relay that other people run, with the names of Buzz's own harness."""

    url: str
    """Its canonical address, ``ws://host[:port]`` or ``wss://host[:port]``: its ``RELAY_URL``. It
    tells communities apart by this authority, and everybody signs it."""
    owner_key_env: VariableName
    """The *name* of the variable, on every node, with the secret key of the owner: a member of the
    relay, whose word admits the trials' identities."""
    gateway: str | None = None
    """``host:port`` to which nodes connect in place of the URL's own; null: that."""
    archive_on_teardown: bool = True
    """Whether a trial's channel is archived at its end."""

    @model_validator(mode="after")
    def _is_reachable(self) -> Self:
        parts = _split(self.url)
        if parts is None or parts.scheme not in _DEFAULT_PORTS or not parts.hostname:
            raise ValueError(_FORM)
        if parts.username is not None or parts.path.strip("/") or parts.query or parts.fragment:
            raise ValueError("url must have no more than a scheme, a host and a port")
        # A parser is lenient: what it drops or guesses would still be signed and dialled as it is.
        host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
        authorities = {host, f"{host}:{parts.port or 'none'}"}
        written = self.url.removesuffix("/")
        if written != f"{parts.scheme}://{parts.netloc}" or parts.netloc.lower() not in authorities:
            raise ValueError(_FORM)
        if not _is_address(self.place.host) and not _NAME.fullmatch(self.place.host):
            raise ValueError(
                "url must have the name of a host, in ASCII and without a dot at its end, which "
                "the relay leaves out of what it expects to be signed"
            )
        if self.place.port in _DEFAULT_PORTS.values() and parts.port not in (None, self._default):
            raise ValueError(
                f"url may not have port {parts.port} with {parts.scheme}://: the relay leaves it "
                "out of what it expects to be signed; name it in gateway, and not in the url"
            )
        if self.place.port == RESERVED_PORT:
            raise ValueError(f"url may not have port {RESERVED_PORT}: the gateway has it")
        if _is_address(self.place.host):
            if self.place.host not in _LOOPBACK:
                raise ValueError(
                    "url must name a host: containers have the relay on their own loopback, which "
                    "no other address can stand for"
                )
            if self.gateway is not None:
                raise ValueError("gateway needs a url with the name of a host, not an address")
        if self.gateway is not None and _place_of(self.gateway) is None:
            raise ValueError("gateway must be host:port")
        return self

    @property
    def place(self) -> Place:
        """Host and port of the canonical address."""
        parts = urlsplit(self.url)
        return Place(parts.hostname or "", parts.port or self._default)

    @property
    def _default(self) -> int:
        return _DEFAULT_PORTS[urlsplit(self.url).scheme]

    @property
    def community(self) -> str:
        """The authority by which the relay tells communities apart (Buzz: the ``Host``)."""
        host, port = self.place
        return host if port in _DEFAULT_PORTS.values() else f"{host}:{port}"

    @property
    def dialled(self) -> Place | None:
        """Where nodes connect; null: where the URL says."""
        return None if self.gateway is None else _place_of(self.gateway)


def _tag(value: Any) -> str:
    return "[deployment]" if isinstance(value, dict | Deployment) else "[embedded]"


RelayKind = Annotated[
    Annotated[Literal["embedded"], Tag("[embedded]")] | Annotated[Deployment, Tag("[deployment]")],
    Discriminator(_tag),
]
"""``embedded``: every trial has a relay of its own; else the deployment that they share."""


class RelaySeen(Strict):
    """What a deployment said of itself (NIP-11)."""

    community: str
    """The authority that it was asked under."""
    name: str | None = None
    software: str | None = None
    version: str | None = None
    pubkey: str | None = None
    """Its own key, which signs group state."""

    @classmethod
    def of(cls, deployment: Deployment, said: Mapping[str, object]) -> Self:
        """What of a relay's document (NIP-11) is kept.

        Args:
            deployment: the relay.
            said: the document; others wrote it.
        """
        names = {"name": "name", "software": "software", "version": "version", "pubkey": "self"}
        found = {field: said.get(name) for field, name in names.items()}
        words = {
            field: _plain(text[:200]) for field, text in found.items() if isinstance(text, str)
        }
        return cls(community=deployment.community, **words)


class RelayUse(Strict):
    """The deployment that a try used; on the try's record."""

    url: str
    gateway: str | None = None
    seen: RelaySeen | None = None
    """At the try's start; null: it did not say."""
    channel_id: str | None = None
    """Null: the try did not come that far."""
    archived: str | None = None
    """``archived``, or the words with which the relay refused; null: it was not tried."""


def _plain(words: str) -> str:
    """What a terminal may be given and a record can hold: no control codes, no lone surrogates."""
    return "".join(each if each.isprintable() else "?" for each in words)


def _split(url: str) -> SplitResult | None:
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        return None
    return parts


def _place_of(text: str) -> Place | None:
    parts = _split(f"//{text}")
    if parts is None or not parts.hostname or not parts.port or parts.netloc != text:
        return None
    if parts.username is not None or not (
        _is_address(parts.hostname) or _NAME.fullmatch(parts.hostname)
    ):
        return None
    return Place(parts.hostname, parts.port)


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True
