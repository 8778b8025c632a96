"""Who the agent is: its key, its owner's attestation, and what it signs with them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from workers.nostr import http_auth
from workers.nostr.attestation import Attestation
from workers.nostr.errors import AttestationError
from workers.nostr.event import Event
from workers.nostr.keys import Keypair

AUTH_KIND = 22242


@dataclass(frozen=True)
class Identity:
    """A key with the attestation that admits it to a closed relay."""

    keypair: Keypair
    attestation: Attestation | None
    now: Callable[[], float] = time.time
    """Unix seconds."""

    @classmethod
    def from_texts(cls, private_key: str, auth_tag: str) -> Identity:
        """Reads what the environment carries; an empty ``auth_tag`` means none.

        Raises:
            KeyFormatError: the key is none.
            AttestationError: the attestation is malformed, or not one for this key.
        """
        keypair = Keypair.from_secret(private_key)
        if not auth_tag.strip():
            return cls(keypair, None)
        attestation = Attestation.from_text(auth_tag)
        if not attestation.verify(keypair.pubkey):
            raise AttestationError("the attestation is not one for this key")
        return cls(keypair, attestation)

    @property
    def pubkey(self) -> str:
        """The public key in hex."""
        return self.keypair.pubkey

    def sign(
        self, kind: int, tags: Iterable[Sequence[str]], content: str, *, not_before: int = 0
    ) -> Event:
        """A signed event of now, the attestation appended last (NIP-OA).

        ``not_before`` pushes its time on, for what must be newer than what it replaces.
        """
        own = () if self.attestation is None else (self.attestation.to_tag(),)
        moment = max(int(self.now()), not_before)
        return Event.sign(self.keypair, kind, (*tags, *own), content, moment)

    def answer_challenge(self, challenge: str, relay_url: str) -> Event:
        """The AUTH event for a relay's challenge (NIP-42), attested where we can."""
        return self.sign(AUTH_KIND, (("relay", relay_url), ("challenge", challenge)), "")

    def http_headers(self, url: str, body: bytes) -> dict[str, str]:
        """The headers of one POST to the bridge; NIP-98 ids are used once, so never keep them."""
        headers = {
            "Authorization": http_auth.authorize(self.keypair, url, "POST", body, self.now()),
            "Content-Type": "application/json",
        }
        if self.attestation is not None:
            headers["x-auth-tag"] = self.attestation.to_text()
        return headers
