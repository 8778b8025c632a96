"""What a running trial takes of the node's disk: its logs are trimmed, its share is watched.

A log that grows beyond what is kept of it loses its middle while it grows: the blocks are given
back to the file system and the file keeps its length, so that whoever follows it goes on by its
offset, and what is cut is counted by the length. Nobody needs to hold the log for that: a flood
from a command costs no more than one from the agent.

*Storage is soft where the engine has no quota:* what a container writes beside its mounts is
looked at now and then. More than the task's ``storage_mb`` goes on the record and ends nothing,
since a look is late and counts whole blocks; twice as much ends the trial.
"""

from __future__ import annotations

import ctypes
import os
import time
from contextlib import suppress
from pathlib import Path

from workers.container.disk import MIB, used_bytes
from workers.trial.files import LogTail, UnsafeFileError, open_guarded

LOOK_S = 1.0
SOON_S = 0.05
"""Between two looks while somebody writes fast."""
FAST_BYTES = 4 * MIB
"""Growth from one look to the next that is called fast."""
UNREAD_BYTES = 64 * MIB
"""What may wait in a log for whoever follows it; beyond, the disk comes first."""
LAYER_LOOK_S = 1.0
LAYER_SHARE = 20
"""Looking through the writable layer may take one part in so many of the time."""
LAYER_EXCESS = 2
"""The multiple of ``storage_mb`` at which a trial is ended where the engine has no quota."""

_BLOCK = 4096
_KEEP_SIZE_PUNCH_HOLE = 0x01 | 0x02
_libc = ctypes.CDLL(None, use_errno=True)
_libc.fallocate.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64)


class DiskWatch:
    """The share of one trial. ``look`` blocks: call it in a thread."""

    def __init__(
        self,
        logs: Path,
        layer: Path | None,
        storage_bytes: int,
        log_bytes: int,
        followed: LogTail | None = None,
        beside: Path | None = None,
    ) -> None:
        """Looks at nothing yet.

        Args:
            logs: the agents' log folder, which is the node's own disk.
            layer: the container's writable layer; null: the engine bounds it, or it is not seen.
            storage_bytes: what the agents may store.
            log_bytes: what is kept of each log.
            followed: the log that somebody follows: what is unread of it stays.
            beside: another folder on the node's disk that the agents may write to.
        """
        self._logs = logs
        self._layer = layer
        self._bound = storage_bytes
        self._log_bytes = log_bytes
        self._followed = followed
        self._beside = beside
        self._used = 0
        self._layer_at = 0.0
        self.pause_s = LOOK_S
        """How long to wait until the next look."""
        self.layer_bytes: int | None = None if layer is None else 0
        """The most that the writable layer was seen to hold."""

    def look(self) -> str:
        """Trims and measures once.

        Returns:
            Why the trial must end; empty: it need not.
        """
        for log in sorted(self._logs.glob("*.log")):
            tail = self._followed
            trim(log, self._log_bytes, tail.offset if tail and log == tail.path else None)
        used = used_bytes(self._logs, self._bound)
        if self._beside is not None:
            used += used_bytes(self._beside, self._bound)
        self.pause_s = SOON_S if used - self._used > FAST_BYTES else LOOK_S
        self._used = used
        if used > self._bound:
            return f"/logs/agents holds {used // MIB} MB or more{self._told()}"
        return self._look_at_layer()

    def _look_at_layer(self) -> str:
        now = time.monotonic()
        if self._layer is None or self.layer_bytes is None or now < self._layer_at:
            return ""
        most = LAYER_EXCESS * self._bound
        used = used_bytes(self._layer, most)
        took_s = time.monotonic() - now
        self._layer_at = time.monotonic() + max(LAYER_LOOK_S, LAYER_SHARE * took_s)
        self.layer_bytes = max(self.layer_bytes, used)
        if used <= most:
            return ""
        return f"the container's own files take {used // MIB} MB or more{self._told()}"

    def _told(self) -> str:
        return f", storage_mb is {self._bound // MIB}"


def trim(log: Path, kept: int, followed: int | None = None) -> None:
    """Gives back the blocks in the middle of a log that is far longer than what is kept of it.

    Args:
        log: the file; a container may have put anything there.
        kept: bytes that stay at its beginning, and at its end.
        followed: how far somebody has read it, who is waited for; null: nobody follows it.
    """
    with suppress(FileNotFoundError, UnsafeFileError):
        descriptor = open_guarded(log, os.O_RDWR)
        try:
            begin = -(-kept // _BLOCK) * _BLOCK
            end = os.fstat(descriptor).st_size - kept
            if followed is not None:
                end = min(end, max(followed, end - UNREAD_BYTES))
            end = end // _BLOCK * _BLOCK
            if end > begin:
                # A file system without holes keeps it whole: then its size ends the trial.
                _libc.fallocate(descriptor, _KEEP_SIZE_PUNCH_HOLE, begin, end - begin)
        finally:
            os.close(descriptor)
