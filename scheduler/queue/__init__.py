"""Stage 3: the attempts of a sweep as a state machine in memory, without I/O."""

from __future__ import annotations

from scheduler.queue.breakers import BreakerChange
from scheduler.queue.states import State
from scheduler.queue.work_queue import Counts, LostLease, WorkQueue

__all__ = ["BreakerChange", "Counts", "LostLease", "State", "WorkQueue"]
