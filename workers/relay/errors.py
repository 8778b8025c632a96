"""What a client of a relay may have to handle.

RelayError
├── EventFileError (in ``event_file``)
├── RelayRefusedError
└── RelayUnreachableError
"""

from __future__ import annotations


class RelayError(Exception):
    """A relay did not do what was asked; the message names the request and the reason."""


class RelayRefusedError(RelayError):
    """The relay answered, and the answer is no."""

    def __init__(self, request: str, status: int, reason: str) -> None:
        """Keeps the facts beside the text.

        Args:
            request: what was asked, for example ``POST /events``.
            status: the HTTP status; 200 where an event was answered ``accepted: false``.
            reason: the relay's own words.
        """
        super().__init__(f"{request}: relay error {status}: {reason}")
        self.status = status
        self.reason = reason

    @property
    def is_for_the_time(self) -> bool:
        """Whether it refused the time on an event or a request (Buzz's own words for both)."""
        return "timestamp too far from server time" in self.reason


class RelayUnreachableError(RelayError):
    """No usable answer came, in any of the attempts or within the deadline.

    A publish that ends so may still have been stored: ask for its id before signing anew.
    """
