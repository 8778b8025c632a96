"""Checks of what a command line names: channels, events, keys."""

from __future__ import annotations

import uuid

from workers.agent.commands.errors import CommandError, user_error
from workers.nostr.errors import KeyFormatError
from workers.nostr.keys import parse_pubkey
from workers.nostr.tags import is_hex64


def channel_id(text: str) -> str:
    """A channel's UUID in its usual spelling.

    Raises:
        CommandError: it is none.
    """
    try:
        return str(uuid.UUID(text))
    except ValueError as error:
        raise user_error(f"not a channel's UUID: {text[:80]!r}") from error


def event_id(text: str) -> str:
    """An event's id: 64 hex digits.

    Raises:
        CommandError: it is none.
    """
    if not is_hex64(text.lower()):
        raise user_error(f"not an event id (64 hex digits): {text[:80]!r}")
    return text.lower()


def hex_key(text: str) -> str:
    """A public key of 64 hex digits.

    Raises:
        CommandError: it is none.
    """
    if not is_hex64(text.lower()):
        raise user_error(f"not a public key (64 hex digits): {text[:80]!r}")
    return text.lower()


def any_key(text: str) -> str:
    """A public key in hex or as npub, given back in hex.

    Raises:
        CommandError: it is neither.
    """
    try:
        return parse_pubkey(text)
    except KeyFormatError as error:
        raise user_error(f"not a public key (hex or npub): {text[:80]!r}") from error


def found(value: object, what: str) -> None:
    """Raises ``not_found`` unless something was found."""
    if not value:
        raise CommandError("not_found", f"{what} was not found")
