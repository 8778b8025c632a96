"""Who waits for a folder of logs to change is woken by the kernel: inotify(7), one for a node.

A trial that only waits costs no look at its logs. What a container writes into a bind mount is
seen here, since the node is on its kernel. Where the kernel refuses, as it does beyond
``fs.inotify.max_user_instances`` and ``max_user_watches``, the folder counts as changed once a
second.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

CALM_S = 0.02
"""From one reading of changes to the next: a flood of them wakes nobody more often."""
BLIND_S = 1.0
"""Between two looks at a folder that the kernel does not watch."""

_MODIFY, _CREATE, _MOVED_TO = 0x2, 0x100, 0x80
_ONLY_FOLDERS, _NO_LINKS = 0x01000000, 0x02000000
_HEAD = struct.Struct("iIII")
"""Of an event: watch, mask, cookie, and how long the name after it is."""
_READ_BYTES = 64 * 1024
_libc = ctypes.CDLL(None, use_errno=True)
_libc.inotify_add_watch.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_uint32)


class Followed:
    """A folder, and how often it was seen to change; for any number of waiters."""

    def __init__(self, *, is_blind: bool = False) -> None:
        self.changes = 0
        """Grows with every change, or several at once; by itself where it is blind."""
        self._is_blind = is_blind
        self._next = asyncio.Event()

    async def after(self, seen: int, timeout_s: float) -> int:
        """Waits for a change later than those seen; gives ``changes``, new or not.

        Args:
            seen: ``changes`` as the caller saw it last.
            timeout_s: after which it is enough.
        """
        if self._is_blind:
            await asyncio.sleep(min(timeout_s, BLIND_S))
            self.changed()
        elif self.changes == seen:
            with suppress(TimeoutError):
                async with asyncio.timeout(timeout_s):
                    await self._next.wait()
        return self.changes

    def changed(self) -> None:
        """Wakes whoever waits."""
        self.changes += 1
        self._next.set()
        self._next = asyncio.Event()


class LogWatch:
    """The watched folders of one event loop; nothing is open while no folder is followed."""

    def __init__(self) -> None:
        self._descriptor: int | None = None
        self._loop: asyncio.AbstractEventLoop
        self._calm: asyncio.TimerHandle | None = None
        self._followed: dict[int, Followed] = {}

    @contextmanager
    def follow(self, folder: Path) -> Iterator[Followed]:
        """Follows a folder while it is open, and no folder below it; one follower at a time."""
        watch = self._watch(folder)
        if watch is None:
            yield Followed(is_blind=True)
            return
        made = self._followed[watch] = Followed()
        try:
            yield made
        finally:
            del self._followed[watch]
            _libc.inotify_rm_watch(self._descriptor, watch)
            self._close_unused()

    def _watch(self, folder: Path) -> int | None:
        """The number of a new watch; None: the kernel has none to give."""
        if self._descriptor is None:
            made = _libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
            if made < 0:
                return None
            self._descriptor = made
            self._loop = asyncio.get_running_loop()
            self._loop.add_reader(made, self._read)
        mask = _MODIFY | _CREATE | _MOVED_TO | _ONLY_FOLDERS | _NO_LINKS
        watch: int = _libc.inotify_add_watch(self._descriptor, os.fsencode(folder), mask)
        if watch < 0:
            self._close_unused()
            return None
        return watch

    def _close_unused(self) -> None:
        """Gives the kernel back what nobody follows by."""
        if self._followed or self._descriptor is None:
            return
        if self._calm is not None:
            self._calm.cancel()
            self._calm = None
        self._loop.remove_reader(self._descriptor)
        os.close(self._descriptor)
        self._descriptor = None

    def _read(self) -> None:
        """Takes in what has changed, then lets more come together."""
        assert self._descriptor is not None  # it is read no more once it is closed
        with suppress(BlockingIOError):
            found = set(_watches(os.read(self._descriptor, _READ_BYTES)))
            # -1: more had changed than the kernel keeps: any folder may have.
            every = self._followed if -1 in found else found & self._followed.keys()
            for watch in tuple(every):
                self._followed[watch].changed()
        self._loop.remove_reader(self._descriptor)
        self._calm = self._loop.call_later(CALM_S, self._go_on)

    def _go_on(self) -> None:
        self._calm = None
        assert self._descriptor is not None  # closing cancels this
        self._loop.add_reader(self._descriptor, self._read)


def _watches(data: bytes) -> Iterator[int]:
    """The watches that events tell of."""
    place = 0
    while place < len(data):
        watch, _, _, name = _HEAD.unpack_from(data, place)
        yield watch
        place += _HEAD.size + name
