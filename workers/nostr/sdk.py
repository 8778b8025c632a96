"""The only door to ``nostr_sdk``: signatures, key formats and NIP-44, on plain values.

Every failure of that library leaves here as one of ours; no text of it carries a secret.
"""

from __future__ import annotations

import ctypes
from typing import Any

import nostr_sdk

from workers.nostr.errors import EngramError, KeyFormatError
from workers.nostr.tags import is_hex64

DIGEST_BYTES = 32
_FAILURES = (nostr_sdk.NostrSdkError, UnicodeError)
_BLANK_EVENT = '{"id":"%s","pubkey":"%s","created_at":0,"kind":1,"tags":[],"content":"","sig":"%s"}'


class Signer:
    """A loaded secret key. It prints as its type alone."""

    def __init__(self, secret: str) -> None:
        """Loads a secret key.

        Args:
            secret: 64 hex digits or ``nsec1…``.

        Raises:
            KeyFormatError: it is neither, or no number of the curve's order.
        """
        try:
            self._keys: Any = nostr_sdk.Keys.parse(_form(secret, "nsec1"))
        except _FAILURES:
            # The cause is dropped: a foreign text might repeat the secret.
            raise KeyFormatError("not a secret key (64 hex digits or nsec)") from None

    def secret(self) -> str:
        """The secret key in 64 hex digits."""
        return str(self._keys.secret_key().to_hex())

    def nsec(self) -> str:
        """The secret key as ``nsec1…`` (NIP-19)."""
        return str(self._keys.secret_key().to_bech32())

    def pubkey(self) -> str:
        """The x-only public key in 64 hex digits (BIP-340)."""
        return str(self._keys.public_key().to_hex())

    def sign(self, digest: bytes) -> str:
        """A BIP-340 signature over 32 bytes, in 128 hex digits."""
        if len(digest) != DIGEST_BYTES:
            raise ValueError(f"a digest has {DIGEST_BYTES} bytes, not {len(digest)}")
        return str(self._keys.sign_schnorr(digest))

    def encrypt(self, peer: str, text: str) -> str:
        """NIP-44 v2 of a text, for a peer's public key.

        Raises:
            EngramError: the text is empty, longer than 65535 bytes, or the key is none.
        """
        try:
            return str(
                nostr_sdk.nip44_encrypt(
                    self._keys.secret_key(),
                    nostr_sdk.PublicKey.parse(peer),
                    text,
                    nostr_sdk.Nip44Version.V2,
                )
            )
        except _FAILURES as error:
            raise EngramError(f"cannot encrypt (NIP-44): {error}") from error

    def decrypt(self, peer: str, payload: str) -> str:
        """The text that a NIP-44 payload holds, between this key and a peer's.

        Raises:
            EngramError: it was not made between these two keys, or was changed.
        """
        try:
            return str(
                nostr_sdk.nip44_decrypt(
                    self._keys.secret_key(), nostr_sdk.PublicKey.parse(peer), payload
                )
            )
        except _FAILURES as error:
            raise EngramError(f"cannot decrypt (NIP-44): {error}") from error


def generate() -> Signer:
    """A fresh random key."""
    return Signer(str(nostr_sdk.Keys.generate().secret_key().to_hex()))


def verify(pubkey: str, digest: bytes, signature: str) -> bool:
    """Whether a BIP-340 signature over 32 bytes is this key's.

    The library verifies events only, so the digest travels as the id of an otherwise blank
    event, whose signature is checked and whose id is not.
    """
    if len(digest) != DIGEST_BYTES:
        return False
    try:
        event = nostr_sdk.Event.from_json(_BLANK_EVENT % (digest.hex(), pubkey, signature))
        return bool(event.verify_signature())
    except _FAILURES:
        return False


def parse_pubkey(text: str) -> str:
    """A public key in 64 hex digits, from those or from ``npub1…``.

    Raises:
        KeyFormatError: it is neither.
    """
    try:
        return str(nostr_sdk.PublicKey.parse(_form(text, "npub1")).to_hex())
    except _FAILURES as error:
        raise KeyFormatError("not a public key (64 hex digits or npub)") from error


def npub(pubkey: str) -> str:
    """The ``npub1…`` form of a public key (NIP-19).

    Raises:
        KeyFormatError: it is no key.
    """
    try:
        return str(nostr_sdk.PublicKey.parse(_form(pubkey, "npub1")).to_bech32())
    except _FAILURES as error:
        raise KeyFormatError("not a public key (64 hex digits or npub)") from error


def _quicken(library: Any) -> None:
    """Lets the library take a text in one move instead of byte by byte.

    Its generated glue spends more time on copying an event's JSON than on the signature itself.
    A version whose glue looks different is left as it is: slower, and right.
    """
    builder: Any = getattr(library, "_UniffiRustBufferBuilder", None)
    if hasattr(builder, "_reserve") and hasattr(builder, "write"):
        builder.write = _write_at_once


def _write_at_once(builder: Any, value: bytes) -> None:
    """Appends bytes to a buffer of the library's."""
    with builder._reserve(len(value)):
        buffer = builder.rbuf
        ctypes.memmove(ctypes.byref(buffer.data.contents, buffer.len), bytes(value), len(value))


def _form(text: str, prefix: str) -> str:
    """A key's text, held to the two forms that count: the library also takes 33 bytes of hex."""
    if text.startswith(prefix) or is_hex64(text.lower()):
        return text
    raise KeyFormatError(f"a key is 64 hex digits or {prefix}…")


_quicken(getattr(nostr_sdk, "nostr_sdk", None))
