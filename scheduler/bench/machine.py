"""What the whole machine has worked, whoever it worked for."""

from __future__ import annotations

import os
from pathlib import Path

_IDLE = (3, 4)
"""Places of ``idle`` and ``iowait`` among the kernel's times (proc_stat(5))."""
_GUESTS = 8
"""From here on the times are counted in the first ones already."""


def core_seconds() -> float:
    """Seconds that the machine's cores have been busy since it was started, added up.

    The difference of two looks is the work of all that ran between them: of what is measured
    only if nothing else did.
    """
    words = Path("/proc/stat").read_text().partition("\n")[0].split()[1:]
    ticks = [int(word) for place, word in enumerate(words[:_GUESTS]) if place not in _IDLE]
    return sum(ticks) / os.sysconf("SC_CLK_TCK")
