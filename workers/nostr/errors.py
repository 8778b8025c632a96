"""What can be wrong with something that claims to be Nostr.

NostrError
├── KeyFormatError
├── EventFormatError
├── AttestationError
├── HttpAuthError
├── EngramError
├── FilterError
└── JsonError
"""

from __future__ import annotations


class NostrError(ValueError):
    """A value is not what its part of the protocol asks for; the message says which and why."""


class KeyFormatError(NostrError):
    """A text is no key. The message never repeats the text."""


class EventFormatError(NostrError):
    """A document is not a signed event (NIP-01)."""


class AttestationError(NostrError):
    """A tag is not an owner attestation (NIP-OA)."""


class HttpAuthError(NostrError):
    """An ``Authorization`` header does not authenticate its request (NIP-98)."""


class EngramError(NostrError):
    """A slug, a body or an event is not a memory of this agent and owner."""


class FilterError(NostrError):
    """A document is not a filter (NIP-01)."""


class JsonError(NostrError):
    """A text is not the JSON that the protocol allows."""
