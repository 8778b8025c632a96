from __future__ import annotations

import pytest

from scheduler.cli.exits import Exit, UsageFault
from scheduler.cli.failures import advice_on, exit_of
from scheduler.errors import ClusterError, DriverClaimError, IllegalMoveError, NodeLostError
from scheduler.lock import LockError
from scheduler.manifest import ManifestError
from workers.container.interface import ContainerError, ImageBuildError, NoEngineError
from workers.contract.base import FormatError
from workers.storage import MissingKeyError, StoreError, StoreUrlError


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ManifestError([]), Exit.USAGE),
        (LockError("no lock"), Exit.USAGE),
        (UsageFault("say what"), Exit.USAGE),
        (StoreUrlError("no scheme"), Exit.USAGE),
        (StoreError("refused"), Exit.INFRASTRUCTURE),
        (MissingKeyError("nothing there"), Exit.INFRASTRUCTURE),
        (FormatError("not JSON"), Exit.INFRASTRUCTURE),
        (ContainerError("no engine"), Exit.INFRASTRUCTURE),
        (ImageBuildError("no base"), Exit.INFRASTRUCTURE),
        (ClusterError("no Ray"), Exit.INFRASTRUCTURE),
        (DriverClaimError("taken"), Exit.INFRASTRUCTURE),
        (NodeLostError("n1", "gone"), Exit.INFRASTRUCTURE),
        (IllegalMoveError("a", "planned", "committed"), Exit.BUG),
        (KeyboardInterrupt(), Exit.INTERRUPTED),
        (KeyError("attempt"), Exit.BUG),
        (AssertionError(), Exit.BUG),
    ],
)
def test_every_kind_of_error_has_its_code(error: BaseException, code: Exit) -> None:
    assert exit_of(error) is code


def test_an_engine_that_is_not_there_sends_to_the_doctor() -> None:
    assert "apiary doctor" in advice_on(NoEngineError("connect to the Docker engine"))
    assert advice_on(ContainerError("no such image")) == ""


def test_a_store_that_fails_sends_to_the_doctor_and_a_missing_object_does_not() -> None:
    assert "apiary doctor" in advice_on(StoreError("create 'a': Permission denied"))
    assert advice_on(MissingKeyError("get 'a': there is no such object")) == ""
