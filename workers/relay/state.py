"""Everything that one relay knows, without any of its behaviour."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from workers.nostr.attestation import Attestation
from workers.nostr.keys import Keypair
from workers.relay.groups import Groups
from workers.relay.limits import Limits
from workers.relay.store import EventStore


@dataclass
class RelayState:
    """The facts of one relay."""

    owner: str
    """The one direct member; everybody else needs its attestation."""
    host: str | None
    """The canonical authority, as clients send it in ``Host``; None: whatever they send."""
    clock: Callable[[], float]
    """Unix seconds."""
    secure: bool = False
    """Whether clients come by TLS, which ends before this relay, so that they sign ``wss``."""
    keypair: Keypair = field(default_factory=Keypair.generate)
    """The relay's own key, which signs group state."""
    limits: Limits = field(default_factory=Limits)
    store: EventStore = field(default_factory=EventStore)
    groups: Groups = field(default_factory=Groups)
    owners: dict[str, str] = field(default_factory=dict)
    """The proven owner of each agent; the first proof stays."""
    presence: dict[str, str] = field(default_factory=dict)
    """The status of each present key."""
    reactions: dict[tuple[str, str, str], str] = field(default_factory=dict)
    """Event id by author, target and content: one reaction of a kind each."""

    def admit(self, pubkey: str, attestation: Attestation | None, *, record: bool) -> bool:
        """Whether a key may use the relay: the owner, or an agent that the owner attests.

        Conditions of an attestation are not evaluated here (Buzz).

        Args:
            pubkey: the authenticated key.
            attestation: what it presented.
            record: remember the proven owner (on AUTH and ``/events``, not on queries).
        """
        if pubkey == self.owner:
            return True
        if attestation is None or attestation.owner != self.owner:
            return False
        if self.owners.get(pubkey) == self.owner:
            return True  # proved before, and proofs do not expire
        if not attestation.verify(pubkey):
            return False
        if record:
            self.owners.setdefault(pubkey, attestation.owner)
        return True

    def is_owner_of(self, pubkey: str, agent: str) -> bool:
        """Whether a key is an agent's proven owner."""
        return self.owners.get(agent) == pubkey
