"""Whether Ray itself still lives: its processes on this machine, or a cluster's address. No Ray.

*Why it is watched from outside:* a driver whose cluster has no head any more is told nothing. Its
calls wait, and after a minute Ray's native code ends the process, without a report.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Mapping

from scheduler.process import is_running

CONNECT_S = 5.0
REFUSED_S = 20.0
"""A head whose machine refuses connections for so long is lost; a restarted one is back before."""
CUT_S = 60.0
"""The same of one from which no word comes: the network may be cut. After about as long Ray gives
up the machine of a driver that it does not hear of."""


class RayWatch:
    """Looks at Ray's processes, or knocks at its head; may block for ``CONNECT_S``."""

    def __init__(
        self,
        processes: Mapping[str, int],
        head: str,
        knocks: Callable[[str], None] | None = None,
    ) -> None:
        """Looks at nothing yet.

        Args:
            processes: of a local Ray, by what they are; empty where it is not ours.
            head: ``host:port`` of the cluster's head; empty: not known.
            knocks: tries to reach the head; null: by a connection.
        """
        self._knock = knocks or knock
        self._processes = dict(processes)
        self._head = head
        self._reached_at: float | None = None

    def why_lost(self, now: float) -> str:
        """Why Ray is lost for certain, as a sentence; empty while it is not.

        Args:
            now: monotonic seconds.
        """
        for what, pid in self._processes.items():
            if not is_running(pid):
                return f"{what} on this machine (process {pid}) died, and with it the nodes"
        if self._processes or not self._head:
            return ""
        try:
            self._knock(self._head)
        except OSError as error:
            since = self._reached_at = now if self._reached_at is None else self._reached_at
            if now - since > (REFUSED_S if isinstance(error, ConnectionRefusedError) else CUT_S):
                return (
                    f"the head of the Ray cluster at {self._head} has not been reachable for "
                    f"{now - since:.0f} s ({error.strerror or error})"
                )
        else:
            self._reached_at = now
        return ""


def knock(address: str, timeout_s: float = CONNECT_S) -> None:
    """Opens and closes a connection.

    Raises:
        OSError: nothing listens there, or it cannot be reached in time.
    """
    host, _, port = address.rpartition(":")
    socket.create_connection((host.strip("[]"), int(port)), timeout_s).close()
