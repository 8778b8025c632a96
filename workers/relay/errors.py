"""What a client of a relay may have to handle.

RelayError
├── EventFileError (in ``event_file``)
├── RelayRefusedError
└── RelayUnreachableError
"""

from __future__ import annotations

MOST_WORDS = 500
"""Characters of a relay's words that are kept."""


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
        self.status = status
        self.reason = plain(reason)
        super().__init__(f"{request}: relay error {status}: {self.reason}")

    @property
    def is_for_the_time(self) -> bool:
        """Whether it refused the time on an event or a request (Buzz's own words for both)."""
        return "timestamp too far from server time" in self.reason


class RelayUnreachableError(RelayError):
    """No usable answer came, in any of the attempts or within the deadline.

    A publish that ends so may still have been stored: ask for its id before signing anew.
    """


def plain(words: str) -> str:
    """A relay's words as a record can hold them, however long and odd they are."""
    return "".join(each if each.isprintable() else "?" for each in words[:MOST_WORDS])
