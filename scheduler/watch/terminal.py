"""Draws on a whole terminal until its user leaves.

A thread asks for what there is to see, so that a store that does not answer keeps nobody from
leaving. The terminal is as it was before, however this ends.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import termios
import threading
import time
import tty
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Generic, TypeVar

from rich.console import Console, RenderableType
from rich.live import Live
from rich.text import Text

T = TypeVar("T")

PAUSE_S = 1.0
"""Between two looks."""
TICK_S = 0.1
"""Between two looks at keys and at the terminal's size."""
REDRAW_S = 1.0
LEAVE = b"qQ\x03\x04"
"""q, and what Ctrl-C and Ctrl-D send where they are no signals."""


class Looking(threading.Thread, Generic[T]):
    """Looks again and again; keeps what was seen last."""

    def __init__(self, look: Callable[[], T], pause_s: float = PAUSE_S) -> None:
        """``look`` blocks; what it raises ends the looking and is kept."""
        super().__init__(name="looking", daemon=True)
        self._look = look
        self._pause_s = pause_s
        self._ended = threading.Event()
        self.seen: T | None = None
        self.looks = 0
        self.error: BaseException | None = None

    def run(self) -> None:
        """The thread."""
        while not self._ended.is_set():
            try:
                self.seen = self._look()
            except BaseException as error:  # noqa: BLE001 - raised again by whoever draws
                self.error = error
                return
            self.looks += 1
            self._ended.wait(self._pause_s)

    def end(self) -> None:
        """Looks no more; a look under way is let be."""
        self._ended.set()


def draw_until_left(
    console: Console, look: Callable[[], T], draw: Callable[[T, int, int | None], RenderableType]
) -> T | None:
    """Draws what is seen until the user leaves.

    Args:
        console: on the terminal.
        look: blocks; called about once a second in a thread of its own.
        draw: what was seen, the terminal's columns and its lines.

    Returns:
        What was seen last; None: nothing yet.

    Raises:
        Exception: what ``look`` raised.
    """
    looking = Looking(look)
    looking.start()
    try:
        with (
            _interruptible(),
            _keys() as pressed,
            Live(Text(""), console=console, screen=True, auto_refresh=False) as live,
        ):
            drawn: object = None
            drawn_at = -REDRAW_S
            while not pressed():
                if looking.error is not None:
                    raise looking.error
                state = (looking.looks, console.size)
                if state != drawn or time.monotonic() - drawn_at >= REDRAW_S:
                    drawn, drawn_at = state, time.monotonic()
                    seen = looking.seen
                    live.update(
                        Text("reading the store; q leaves", style="dim")
                        if seen is None
                        else draw(seen, *console.size),
                        refresh=True,
                    )
    except KeyboardInterrupt:
        return looking.seen
    finally:
        looking.end()
    return looking.seen


@contextmanager
def _keys() -> Iterator[Callable[[], bool]]:
    """Gives a function that waits a moment for keys and says whether one means to leave."""
    try:
        descriptor = sys.stdin.fileno()
        before = termios.tcgetattr(descriptor)
    except (OSError, ValueError, termios.error):

        def no_keys() -> bool:
            time.sleep(TICK_S)
            return False

        yield no_keys
        return
    is_open = True

    def pressed() -> bool:
        nonlocal is_open
        if not is_open:
            time.sleep(TICK_S)
            return False
        if not select.select([descriptor], [], [], TICK_S)[0]:
            return False
        keys = os.read(descriptor, 64)
        is_open = bool(keys)
        # What begins with ESC is a key of several characters, and none of ours.
        return not keys.startswith(b"\x1b") and any(key in LEAVE for key in keys)

    tty.setcbreak(descriptor)
    try:
        yield pressed
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)


@contextmanager
def _interruptible() -> Iterator[None]:
    """SIGTERM and a closed terminal leave as Ctrl-C does, so that the terminal is given back."""

    def leave(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    numbers = (signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.signal(number, leave) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
