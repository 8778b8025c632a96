"""The key of a relay's owner, read by the name of its variable as a provider's key is."""

from __future__ import annotations

from collections.abc import Mapping

from workers.contract.relay import RelayKind
from workers.gateway.errors import GatewayError
from workers.gateway.secret import read_secret
from workers.nostr.errors import KeyFormatError
from workers.nostr.keys import Keypair


class OwnerKeyError(Exception):
    """There is no usable key; the message names the variable and never a value."""


class NoOwnerKeyError(OwnerKeyError):
    """Neither the variable nor the file's is set."""


def owner_for(relay: RelayKind, environment: Mapping[str, str]) -> Keypair | None:
    """The owner of the identities on a deployment's relay; None: every trial has its own relay.

    Raises:
        OwnerKeyError: as ``read_owner``.
    """
    return None if relay == "embedded" else read_owner(relay.owner_key_env, environment)


def read_owner(name: str, environment: Mapping[str, str]) -> Keypair:
    """The key of variable ``name``, or of the file that ``<name>_FILE`` names; hex or nsec.

    Raises:
        NoOwnerKeyError: neither is there.
        OwnerKeyError: what is there cannot be read, or is no secret key.
    """
    what = f"the variable {name}, or the file that {name}_FILE names"
    try:
        secret = read_secret(name, environment)
    except GatewayError as error:
        raise OwnerKeyError(str(error)) from error
    if secret is None:
        raise NoOwnerKeyError(f"{what}, must hold the relay owner's secret key; it is not set")
    try:
        return Keypair.from_secret(secret.reveal())
    except KeyFormatError:
        # The cause is dropped: it might repeat what was found.
        raise OwnerKeyError(f"{what}, holds no secret key (64 hex digits or nsec)") from None
