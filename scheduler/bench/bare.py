"""The bare loop: what Docker itself needs for a container's life, without any harness.

One turn creates a container, starts it, runs two commands in it one after the other, and removes
it; or it creates, starts, kills and removes two containers one after the other, which is what a
Buzz-native trial asks of the engine: one for the agents, one for the verifier. Always with the
fewest options: no network, no mount, no limit. So many turns run side by side in threads.
"""

from __future__ import annotations

import contextlib
import secrets
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Literal, Self

from workers.container.api import DockerApi, MissingError

Turn = Literal["two execs", "two containers"]
WHAT: dict[Turn, str] = {
    "two execs": "bare loop: create, start, two execs, remove",
    "two containers": "bare loop: twice create, start, kill, remove",
}
CALL_S = 120.0
"""For one call: an engine with many at once lets some of them wait for long."""
COMMANDS = 2
CONTAINERS = 2
LIFE_S = 600
"""After which a forgotten container ends."""
_LABEL = "apiary.bench"


class BareLoop:
    """Turns of a container's life. A context manager, which leaves no container."""

    def __init__(self, image: str, parallel: int) -> None:
        """Connects.

        Args:
            image: what to make containers of.
            parallel: the most turns that will run side by side.

        Raises:
            ContainerError: there is no engine.
        """
        self._image = image
        self._mark = f"{_LABEL}={secrets.token_hex(8)}"
        self._api = DockerApi(connections=parallel)

    def __enter__(self) -> Self:
        """Itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Removes what broken turns left."""
        for each in self._api.listing("containers", [self._mark], CALL_S):
            self._remove(each["Id"])
        self._api.close()

    def seconds(self, turns: int, parallel: int, turn: Turn = "two execs") -> float:
        """How long so many turns take, so many of them at once.

        Raises:
            ContainerError: the engine refused one.
        """
        one = self._two_execs if turn == "two execs" else self._two_containers
        started = time.monotonic()
        with ThreadPoolExecutor(parallel, thread_name_prefix="bare") as pool:
            for _ in pool.map(lambda _: one(), range(turns)):
                pass
        return time.monotonic() - started

    def _two_execs(self) -> None:
        container = self._started()
        for _ in range(COMMANDS):
            execution = self._api.prepare(container, ["/bin/sh", "-c", "true"], {}, CALL_S)
            self._api.execute_to_end(execution, CALL_S)
        self._remove(container)

    def _two_containers(self) -> None:
        for _ in range(CONTAINERS):
            container = self._started()
            self._api.kill(container, CALL_S)
            self._remove(container)

    def _started(self) -> str:
        label, value = self._mark.split("=")
        container = self._api.create(
            f"apiary-bench-{secrets.token_hex(8)}",
            {
                "Image": self._image,
                "Entrypoint": ["/bin/sh"],
                "Cmd": ["-c", f"exec sleep {LIFE_S}"],
                "Labels": {label: value},
                "HostConfig": {"NetworkMode": "none"},
            },
            CALL_S,
        )
        self._api.start(container, CALL_S)
        return container

    def _remove(self, container: str) -> None:
        with contextlib.suppress(MissingError):
            self._api.remove(container, CALL_S)
