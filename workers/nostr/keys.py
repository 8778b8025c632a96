"""Keys: pairs that never print their secret, public key formats, and derived identities."""

from __future__ import annotations

import hashlib

from workers.nostr import sdk
from workers.nostr.curve import ORDER
from workers.nostr.tags import is_hex64

_DIRECTORY_DOMAIN = b"buzz-benchmark-directory-v1"


class Keypair:
    """A secret key and its public key. Equal by public key; repr and str hide the secret."""

    __slots__ = ("_signer", "pubkey")

    pubkey: str
    """64 lower-case hex digits, x-only (BIP-340)."""

    def __init__(self, signer: sdk.Signer) -> None:
        self._signer = signer
        self.pubkey = signer.pubkey()

    @classmethod
    def generate(cls) -> Keypair:
        """A fresh random pair."""
        return cls(sdk.generate())

    @classmethod
    def from_secret(cls, secret: str) -> Keypair:
        """The pair of a secret key in hex or as ``nsec1…``.

        Raises:
            KeyFormatError: the text is no secret key; the message does not repeat it.
        """
        return cls(sdk.Signer(secret.strip()))

    @property
    def secret_hex(self) -> str:
        """The secret key in 64 hex digits: for an agent's environment and nothing else."""
        return self._signer.secret()

    @property
    def nsec(self) -> str:
        """The secret key as ``nsec1…``: so that this spelling, too, can be struck out."""
        return self._signer.nsec()

    def sign(self, digest: bytes) -> str:
        """A BIP-340 signature over 32 bytes, in 128 hex digits."""
        return self._signer.sign(digest)

    def encrypt(self, peer: str, text: str) -> str:
        """NIP-44 v2 of a text for a peer (public key in hex).

        Raises:
            EngramError: the text is empty or too long, or the peer's key is none.
        """
        return self._signer.encrypt(peer, text)

    def decrypt(self, peer: str, payload: str) -> str:
        """The text of a NIP-44 payload exchanged with a peer.

        Raises:
            EngramError: it is not theirs and ours, or was changed.
        """
        return self._signer.decrypt(peer, payload)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Keypair) and other.pubkey == self.pubkey

    def __hash__(self) -> int:
        return hash(self.pubkey)

    def __repr__(self) -> str:
        return f"Keypair(pubkey={self.pubkey!r})"


def parse_pubkey(text: str) -> str:
    """A public key in 64 lower-case hex digits, from hex in any case or ``npub1…``.

    Raises:
        KeyFormatError: it is neither.
    """
    text = text.strip()
    return text if is_hex64(text) else sdk.parse_pubkey(text)


def npub(pubkey: str) -> str:
    """The ``npub1…`` form of a public key (NIP-19).

    Raises:
        KeyFormatError: it is no key.
    """
    return sdk.npub(pubkey)


def derive_identity(owner: Keypair, identity_id: str) -> Keypair:
    """The stable pair of a directory identity under an owner (Buzz benchmark, directory v1).

    SHA-256 of domain, owner's secret and identity id, parted by zero bytes, as a number of
    1 … order − 1.
    """
    seed = b"\x00".join((_DIRECTORY_DOMAIN, bytes.fromhex(owner.secret_hex), identity_id.encode()))
    number = int.from_bytes(hashlib.sha256(seed).digest(), "big") % (ORDER - 1) + 1
    return Keypair.from_secret(f"{number:064x}")
