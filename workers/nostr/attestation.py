"""Owner attestations (NIP-OA): an owner's signed word that a key is its agent."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from workers.nostr import sdk, strict_json
from workers.nostr.errors import AttestationError, JsonError
from workers.nostr.keys import Keypair
from workers.nostr.tags import is_hex64, is_hex128

_CLAUSE = re.compile(r"kind=(0|[1-9][0-9]*)|created_at[<>](0|[1-9][0-9]*)")
_SHORTHAND = re.compile(r"\[auth,([0-9a-f]{64}),([^,\]]*),([0-9a-f]{128})\]")


@dataclass(frozen=True)
class Attestation:
    """An attestation's owner, conditions and signature; whose agent it is, ``verify`` tells."""

    owner: str
    """The owner's public key."""
    conditions: str
    """Empty, or clauses joined by ``&``. Admission checks their form and not their truth."""
    sig: str = field(repr=False)

    @classmethod
    def from_tag(cls, tag: Sequence[object]) -> Attestation:
        """Reads ``["auth", owner, conditions, sig]``.

        Raises:
            AttestationError: it has other elements, or one of the wrong form.
        """
        if len(tag) != 4 or tag[0] != "auth":
            raise AttestationError("an attestation is [auth, owner, conditions, signature]")
        _, owner, conditions, sig = tag
        if not isinstance(owner, str) or not is_hex64(owner):
            raise AttestationError("the owner must be 64 lower-case hex digits")
        if not isinstance(conditions, str) or not _are_conditions(conditions):
            raise AttestationError("the conditions are not kind= or created_at clauses")
        if not isinstance(sig, str) or not is_hex128(sig):
            raise AttestationError("the signature must be 128 lower-case hex digits")
        return cls(owner, conditions, sig)

    @classmethod
    def from_text(cls, text: str) -> Attestation:
        """Reads the JSON array of a header or variable, or its shorthand ``[auth,hex,,hex]``.

        Raises:
            AttestationError: it is neither.
        """
        short = _SHORTHAND.fullmatch(text.strip())
        if short is not None:
            return cls.from_tag(("auth", *short.groups()))
        try:
            tag = strict_json.parse(text)
        except JsonError as error:
            raise AttestationError("an attestation is a JSON array of four texts") from error
        if not isinstance(tag, list):
            raise AttestationError("an attestation is a JSON array of four texts")
        return cls.from_tag(tag)

    def to_tag(self) -> tuple[str, str, str, str]:
        """The tag that events and AUTH carry."""
        return ("auth", self.owner, self.conditions, self.sig)

    def to_text(self) -> str:
        """The JSON array that ``x-auth-tag`` and ``BUZZ_AUTH_TAG`` carry."""
        return strict_json.dump(list(self.to_tag()))

    def verify(self, agent: str) -> bool:
        """Whether the owner signed this for that agent's key; nobody attests itself."""
        if agent == self.owner:
            return False
        return sdk.verify(self.owner, _digest(agent, self.conditions), self.sig)


def attest(owner: Keypair, agent: str, conditions: str = "") -> Attestation:
    """An owner's attestation of an agent's public key.

    Raises:
        AttestationError: owner and agent are one key, or the conditions are malformed.
    """
    if owner.pubkey == agent:
        raise AttestationError("a key cannot attest itself")
    if not _are_conditions(conditions):
        raise AttestationError("the conditions are not kind= or created_at clauses")
    return Attestation(owner.pubkey, conditions, owner.sign(_digest(agent, conditions)))


def find(tags: Sequence[Sequence[str]]) -> Attestation | None:
    """The attestation among tags: exactly one ``auth`` tag, well formed; else None."""
    found = [tag for tag in tags if tag and tag[0] == "auth"]
    if len(found) != 1:
        return None
    try:
        return Attestation.from_tag(found[0])
    except AttestationError:
        return None


def _digest(agent: str, conditions: str) -> bytes:
    return hashlib.sha256(f"nostr:agent-auth:{agent}:{conditions}".encode()).digest()


def _are_conditions(text: str) -> bool:
    return not text or all(_CLAUSE.fullmatch(clause) for clause in text.split("&"))
