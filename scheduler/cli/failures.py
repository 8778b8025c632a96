"""The one table from errors to exit codes."""

from __future__ import annotations

from scheduler.bench.processes import BenchError
from scheduler.cli.exits import Exit, UsageFault
from scheduler.errors import DriverError, IllegalMoveError
from scheduler.lock import LockError
from scheduler.manifest.faults import ManifestError
from scheduler.report.sides import NotComparableError
from workers.container.interface import ContainerError, NoEngineError
from workers.contract.base import FormatError
from workers.exposition import MetricsAddressError
from workers.storage.interface import MissingKeyError, StoreError
from workers.storage.open import StoreUrlError

_CODES: tuple[tuple[type[BaseException], Exit], ...] = (
    (IllegalMoveError, Exit.BUG),
    (UsageFault, Exit.USAGE),
    (ManifestError, Exit.USAGE),
    (LockError, Exit.USAGE),
    (NotComparableError, Exit.USAGE),
    (StoreUrlError, Exit.USAGE),
    (FormatError, Exit.INFRASTRUCTURE),
    (StoreError, Exit.INFRASTRUCTURE),
    (ContainerError, Exit.INFRASTRUCTURE),
    (DriverError, Exit.INFRASTRUCTURE),
    (MetricsAddressError, Exit.INFRASTRUCTURE),
    (BenchError, Exit.INFRASTRUCTURE),
    (KeyboardInterrupt, Exit.INTERRUPTED),
)
"""The first row that fits; an error without a row is a bug."""


def exit_of(error: BaseException) -> Exit:
    """The exit code that an error leads to."""
    return next((code for kind, code in _CODES if isinstance(error, kind)), Exit.BUG)


def advice_on(error: BaseException) -> str:
    """Where to look next, for an error whose own words do not say so; else empty."""
    if isinstance(error, NoEngineError):
        return "`apiary doctor` says what this machine needs"
    if isinstance(error, StoreError) and not isinstance(error, MissingKeyError):
        return "`apiary doctor`, with the same --store, says whether this store can be used"
    return ""
