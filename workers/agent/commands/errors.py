"""How a command fails: one JSON object on standard error, and an exit code by its category."""

from __future__ import annotations

import json
from typing import Any

from workers.agent.bridge import BridgeError

EXIT_CODES = {
    "user_error": 1,
    "not_found": 1,
    "relay_error": 2,
    "network_error": 2,
    "delivery_unknown": 2,
    "auth_error": 3,
    "key_error": 3,
    "error": 4,
    "conflict": 5,
}


class CommandError(Exception):
    """A command failed.

    Attributes:
        category: one of ``EXIT_CODES``.
        retryable: whether the same command may succeed later.
    """

    def __init__(self, category: str, message: str, *, retryable: bool = False) -> None:
        super().__init__(message)
        self.category = category
        self.retryable = retryable

    @property
    def exit_code(self) -> int:
        """What the command exits with."""
        return EXIT_CODES[self.category]

    def to_json(self) -> str:
        """The line for standard error."""
        told: dict[str, Any] = {
            "error": self.category,
            "message": str(self),
            "retryable": self.retryable,
        }
        return json.dumps(told, ensure_ascii=False)


def user_error(message: str) -> CommandError:
    """The command was asked for something that cannot be done that way."""
    return CommandError("user_error", message)


def from_bridge(error: BridgeError, *, publishing: bool, attested: bool) -> CommandError:
    """What a failure of the bridge means to whoever ran the command.

    A publication that got no answer may have been stored, which its author must know.
    """
    message = str(error)
    if error.status in (401, 403):
        if error.status == 403 and attested:
            message += " (the attestation in BUZZ_AUTH_TAG may be stale)"
        return CommandError("auth_error", message)
    passing = error.status in (0, 429) or error.status >= 500
    if publishing and not error.unsent and (error.status == 0 or error.status in (502, 503, 504)):
        return CommandError("delivery_unknown", message, retryable=True)
    category = "network_error" if error.status == 0 else "relay_error"
    return CommandError(category, message, retryable=passing)
