"""Exit codes."""

from __future__ import annotations

import enum


class Exit(enum.IntEnum):
    """What a command's exit code says."""

    DONE = 0
    """Done, and the gate passed, if it was one."""
    BUG = 1
    """A fault of Apiary's own; a traceback stands on standard error."""
    USAGE = 2
    """The command line or a manifest is wrong; nothing was started."""
    REGRESSION = 3
    """A known behaviour is no longer kept."""
    INCONCLUSIVE = 4
    """The coverage is too low for a headline, or a gate cannot tell."""
    INFRASTRUCTURE = 5
    """Docker, Ray, the store or every node failed."""
    BUDGET = 6
    """The sweep's budget stopped it."""
    INTERRUPTED = 130
    """The operator stopped it; nothing committed is lost."""


class UsageFault(Exception):
    """What was asked for is not there or not possible; the message says what is."""
