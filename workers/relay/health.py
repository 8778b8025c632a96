"""Whether a deployment's relay is ready for the identities of an owner."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from workers.nostr.attestation import Attestation, attest
from workers.nostr.keys import Keypair
from workers.relay.client import RelayClient
from workers.relay.errors import RelayError, RelayRefusedError
from workers.relay.link import linked

REQUEST_S = 10.0
_NOT_A_MEMBER = 403


class UnfitRelayError(Exception):
    """The relay cannot be used; the message says why, and what to do."""


@dataclass(frozen=True)
class _Throwaway:
    """A key that is attested for this look and then forgotten."""

    keypair: Keypair
    attestation: Attestation


async def look_at(
    url: str, gateway: tuple[str, int] | None, community: str, owner: Keypair | None
) -> dict[str, Any]:
    """Looks at a relay as a trial would use it; gives what it says of itself (NIP-11).

    Args:
        url: its canonical address.
        gateway: where to connect in its place.
        community: the authority that it is asked under, for messages.
        owner: whose attestations are to admit; None: that is not looked at.

    Raises:
        UnfitRelayError: it is not there, not ready, or admits nobody whom the owner attests.
    """
    keys = Keypair.generate()
    proof = None if owner is None else attest(owner, keys.pubkey)
    where = "" if gateway is None else f" (by way of {gateway[0]}:{gateway[1]})"
    asking = RelayClient(url, keys, proof, gateway=gateway, timeout_s=REQUEST_S)
    try:
        async with asking as client:
            if words := await client.unready():
                raise UnfitRelayError(f"{url}{where} is not ready: {words}")
            said = await client.information()
            if owner is not None and proof is not None:
                await _admitted(client, url, gateway, owner, community)
                async with linked(url, gateway, _Throwaway(keys, proof)):
                    pass
    except RelayError as error:
        raise UnfitRelayError(f"{url}{where}: {_meaning(error, community)}") from error
    return said


async def _admitted(
    client: RelayClient, url: str, gateway: tuple[str, int] | None, owner: Keypair, community: str
) -> None:
    """Whether an authenticated request of an attested key is answered.

    Raises:
        UnfitRelayError: the relay is closed to it.
        RelayError: it is not answered for another reason.
    """
    try:
        await client.query([_mine(client.keypair)])
    except RelayRefusedError as error:
        if error.status != _NOT_A_MEMBER:
            raise
        if await _is_member(url, gateway, owner):
            why = (
                f"the owner {owner.pubkey} is a member, but its attestations admit nobody: set "
                "BUZZ_ALLOW_NIP_OA_AUTH to true on the relay"
            )
        else:
            why = (
                f"the owner {owner.pubkey} is no member of community {community}: add it with "
                f"`buzz-admin add-member --pubkey {owner.pubkey}`"
            )
        raise UnfitRelayError(f"{url}: {why} (the relay said: {error.reason})") from error


async def _is_member(url: str, gateway: tuple[str, int] | None, owner: Keypair) -> bool:
    asking = RelayClient(url, owner, None, gateway=gateway, timeout_s=REQUEST_S)
    try:
        async with asking as client:
            await client.query([_mine(owner)])
    except RelayRefusedError as error:
        if error.status != _NOT_A_MEMBER:
            raise
        return False
    return True


def _mine(keys: Keypair) -> dict[str, Any]:
    return {"kinds": [0], "authors": [keys.pubkey], "limit": 1}


def _meaning(error: RelayError, community: str) -> str:
    """A relay's answer, and what may be behind it."""
    if not isinstance(error, RelayRefusedError):
        return f"{error}: is it running, and is this its address?"
    if error.status == 404:
        return (
            f"{error}: it serves no community {community}: the url must have the authority of the "
            "relay's own RELAY_URL"
        )
    if error.is_for_the_time:
        return f"{error}: set this machine's clock, or the relay's, by NTP"
    if error.status == 401:
        return f"{error}: the url must have scheme and authority of the relay's own RELAY_URL"
    return str(error)
