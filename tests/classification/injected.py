"""Faults inside our own parts, for the one trial that asks for them; those beside it see none.

A relay cannot be killed, or be of another time, from outside of the node's process, and evidence
contradicts itself only by a bug of ours.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import pytest

from workers.contract.evidence import reply_target
from workers.relay import EmbeddedRelay
from workers.trial import collect, provision

RELAY_AHEAD_S: ContextVar[float] = ContextVar("relay_ahead_s", default=0.0)
"""How far the clock of the trial's relay is ahead. Tasks and threads inherit what is set."""
LYING: ContextVar[bool] = ContextVar("lying", default=False)
"""Whether evidence says of every message that it is a reply."""

RELAYS: dict[Path, EmbeddedRelay] = {}
"""The relays of all trials by the folder of their socket."""


class StagedRelay(EmbeddedRelay):
    """The real relay, that can be found, and whose clock can be wrong."""

    def __init__(self, **options: Any) -> None:
        ahead_s = RELAY_AHEAD_S.get()
        super().__init__(**options, clock=lambda: time.time() + ahead_s)

    async def serve_unix(self, path: Path) -> None:
        await super().serve_unix(path)
        RELAYS[path.parent] = self


def _reply_target(tags: tuple[tuple[str, ...], ...]) -> str | None:
    return "f" * 64 if LYING.get() else reply_target(tags)


@contextmanager
def injected() -> Iterator[None]:
    """Puts them in place."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(provision, "EmbeddedRelay", StagedRelay)
        patch.setattr(collect, "reply_target", _reply_target)
        yield
    RELAYS.clear()
