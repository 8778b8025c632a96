"""The exchange's formats, and the version that follows from them."""

from __future__ import annotations

import re

from workers.contract.report import (
    Orders,
    Progress,
    RunningTry,
    exchange_version,
    protocol_version,
)
from workers.contract.spec import Epoch, SweepSpec


def test_the_version_is_the_same_in_every_process_of_one_release() -> None:
    assert re.fullmatch(r"\d+-[0-9a-f]{12}", protocol_version())
    assert protocol_version() == exchange_version(Orders, Progress, SweepSpec)


def test_a_field_more_is_another_version_and_a_text_is_not() -> None:
    class Told(Progress):
        """Other words."""

    class More(Progress):
        mood: str = ""

    Told.__name__ = More.__name__ = "Progress"
    assert exchange_version(Told) == exchange_version(Progress)
    assert exchange_version(More) != exchange_version(Progress)


def test_what_runs_carries_its_epoch_over_the_wire() -> None:
    running = (RunningTry(attempt="a", epoch=Epoch(3, 7), phase="drive"),)
    sent = Progress(node="n1", free_slots=0, running=running, clock_s=1.5, held_s=0.5)
    got = Progress.from_json(sent.to_json(), "progress")
    assert got == sent
    assert str(got.running[0].epoch) == "3-7"
