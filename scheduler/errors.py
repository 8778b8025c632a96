"""What can go wrong in the driver.

::

    DriverError
    ├── IllegalMoveError      the queue was asked for a move that its table does not have
    ├── ClusterError          Ray could not be started, reached or used
    │   ├── NoNodeError       there is no node, and none will come
    │   └── ClusterLostError  Ray itself died under a running sweep
    ├── RelayNotReadyError    a sweep's deployment cannot be used by its trials
    ├── DriverClaimError      no driver generation could be claimed in the store
    └── NodeError             an exchange with a node gave no answer
        ├── NodeLostError     the node is dead for certain
        ├── NodeGoneError     it will not answer again, but its processes may live on
        ├── NodeSpareError    it is not needed any more
        └── NodeSilentError   it may live: its leases run until their term is over
"""

from __future__ import annotations


def error_text(error: BaseException | None) -> str:
    """An error's kind and words, for a journal; empty: there was none."""
    if error is None:
        return ""
    name = type(error).__name__
    return f"{name}: {error}" if str(error) else name


class DriverError(Exception):
    """Root of the driver's own errors."""


class IllegalMoveError(DriverError):
    """An attempt cannot go from one state to the other: a bug of ours."""

    def __init__(self, attempt: str, source: str, target: str) -> None:
        super().__init__(f"attempt {attempt} cannot go from {source} to {target}")
        self.attempt = attempt


class ClusterError(DriverError):
    """Ray could not be started, reached or used; the message says where to look."""


class NoNodeError(ClusterError):
    """There is no node, and none will come."""


class ClusterLostError(ClusterError):
    """Ray itself died: nothing more can be run on it."""


class RelayNotReadyError(DriverError):
    """The relay that a sweep names cannot be used by its trials; the message says why."""


class DriverClaimError(DriverError):
    """No driver generation could be claimed in the store."""


class NodeError(DriverError):
    """An exchange with a node gave no answer."""

    def __init__(self, node: str, reason: str) -> None:
        super().__init__(f"node {node}: {reason}")
        self.node = node
        self.reason = reason


class NodeLostError(NodeError):
    """The node is dead for certain: nothing on it can still commit."""


class NodeGoneError(NodeError):
    """The node will not answer again, and may still run what it holds until its leases end."""


class NodeSpareError(NodeError):
    """The node runs nothing and is not needed any more: it gets nothing, and is ended."""


class NodeSilentError(NodeError):
    """The node did not answer; it may still run what it holds, until its leases end."""
