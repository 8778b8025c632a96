"""How a limit that was found grows again after a refusal. Pure.

::

    limit(age) = top · (1 + (1 - 0.8) · ((age - span) / span)³)

Source: CUBIC (RFC 9438 §4.2) with the factor 0.8 for its 0.7, and with the time ``span`` until
the top is reached again given in place of its constant C. From 0.8 · top it rises fast, is flat
around the top, where the provider's limit is taken to be, and then looks for more, ever faster:
1.2 · top after two spans, 2.6 · top after three.

``span`` is chosen by what a refusal costs, not by a round trip: the next one should come after so
many requests that refusals stay a small share of them.
"""

from __future__ import annotations

DECREASE = 0.8


class Curve:
    """A limit that was found by refusals."""

    def __init__(self, top: float) -> None:
        """Refused just now; ``top`` is where the provider's limit is taken to be."""
        self.top = top
        self._age = 0.0

    def grow(self, seconds: float, span_s: float) -> None:
        """So much time has passed in which more was wanted; in units of the span."""
        self._age += seconds / span_s

    @property
    def value(self) -> float:
        """The limit now."""
        return self.top * (1.0 + (1.0 - DECREASE) * (self._age - 1.0) ** 3)
