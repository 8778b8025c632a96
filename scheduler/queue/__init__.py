"""Stage 3: the attempts of a sweep as a state machine in memory, without I/O."""

from __future__ import annotations

from scheduler.queue.states import State
from scheduler.queue.work_queue import Counts, LostLease, WorkQueue

__all__ = ["Counts", "LostLease", "State", "WorkQueue"]
