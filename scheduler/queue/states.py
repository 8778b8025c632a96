"""The states of an attempt and the one table of legal moves. Pure.

An invalid try is no state: it is the move back to ``planned``, or on to ``dead`` or ``parked``.

::

    planned ──► leased ──► running ──► committed
       ▲          │ │         │ │          ▲
       │          │ └► lost ◄─┘ │          │  whoever commits first, wherever it is found
       └──────────┴──── ▼ ──────┴──► dead, parked
"""

from __future__ import annotations

import enum

from scheduler.errors import IllegalMoveError


class State(enum.StrEnum):
    """Where an attempt is."""

    PLANNED = "planned"
    """Waits for a node, or for the back-off after an invalid try to pass."""
    LEASED = "leased"
    """Given to a node that has not said that it runs."""
    RUNNING = "running"
    """A node says that it runs."""
    LOST = "lost"
    """Its lease is over; the store is being asked what became of the try."""
    COMMITTED = "committed"
    """Its ``result.json`` exists: pass or fail."""
    DEAD = "dead"
    """Given up: tries spent, or its cell is poisoned."""
    PARKED = "parked"
    """The operator stopped its try: planned again when the sweep is resumed."""


LEGAL_MOVES: dict[State, frozenset[State]] = {
    State.PLANNED: frozenset(
        {
            State.LEASED,
            State.COMMITTED,  # a try that had been given up as lost had committed after all
            State.DEAD,  # its cell was poisoned by others
            State.PARKED,  # a driver that is gone had been stopped while it ran this
        }
    ),
    State.LEASED: frozenset(
        {
            State.RUNNING,
            State.LOST,
            State.PLANNED,
            State.COMMITTED,
            State.DEAD,
            State.PARKED,
        }
    ),
    State.RUNNING: frozenset(
        {State.LOST, State.PLANNED, State.COMMITTED, State.DEAD, State.PARKED}
    ),
    State.LOST: frozenset({State.PLANNED, State.COMMITTED, State.DEAD, State.PARKED}),
    State.DEAD: frozenset({State.COMMITTED}),
    State.PARKED: frozenset({State.COMMITTED}),
    State.COMMITTED: frozenset(),
}

HELD = frozenset({State.LEASED, State.RUNNING})
"""A node holds a lease of the attempt."""

SETTLED = frozenset({State.COMMITTED, State.DEAD, State.PARKED})
"""Nothing more happens to the attempt in this run, unless a commit is found."""


def check_move(attempt: str, source: State, target: State) -> None:
    """Refuses a move that the table does not have.

    Raises:
        IllegalMoveError: there is no such move.
    """
    if target not in LEGAL_MOVES[source]:
        raise IllegalMoveError(attempt, source, target)
