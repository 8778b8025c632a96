"""How Prometheus finds and reads a running sweep's metrics."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any
from urllib.parse import urlsplit

from scheduler.cli.options import MetricsOptions
from scheduler.metrics import SweepMetrics
from scheduler.view import SweepView
from workers.contract.result import TryRecord
from workers.exposition import MetricsAddressError, served

LOOK_S = 0.1


class Seen:
    """An observer that keeps the addresses of driver and nodes where Prometheus looks for them."""

    def __init__(self, options: MetricsOptions) -> None:
        self.url: str | None = None
        """Of the driver's own metrics; null: they are not served."""
        self.fault = ""
        """Why the file of targets is older than the sweep; empty: it is not."""
        self._options = options
        self._nodes: dict[str, str] = {}
        self._sweep = ""
        self._written: str | None = None

    def moved(self, view: SweepView) -> None:
        """Notes which nodes are there."""
        self._sweep = view.sweep
        self._nodes = {each.node: each.metrics for each in view.node_views if each.metrics}
        try:
            self.write()
        except MetricsAddressError as error:
            # A sweep does not end for it: Prometheus goes on with the targets that it knows.
            if not self.fault:
                self.fault = str(error)

    def ended(self, record: TryRecord) -> None:
        """A try is no target."""

    def note(self, text: str) -> None:
        """A sentence is no target."""

    def targets(self) -> list[dict[str, Any]]:
        """In the form of ``file_sd_config`` and ``http_sd_config``."""
        found = []
        if self.url is not None:
            found.append({"targets": [urlsplit(self.url).netloc], "labels": {"role": "driver"}})
        for node, address in sorted(self._nodes.items()):
            # A node process is of one sweep: so what it counts can be told from another sweep's.
            labels = {"role": "node", "node": node, "sweep": self._sweep}
            found.append({"targets": [address], "labels": labels})
        return found

    def write(self) -> None:
        """Replaces the file of targets, if there is to be one and something has changed.

        Raises:
            MetricsAddressError: it cannot be written.
        """
        path = self._options.targets
        text = json.dumps(self.targets(), indent=1) + "\n"
        if path is None or text == self._written:
            return
        # Prometheus may read at any moment: it sees the old file or the new one.
        beside = path.with_name(f".{path.name}.{os.getpid()}")
        try:
            beside.write_text(text)
            beside.replace(path)
        except OSError as error:
            raise MetricsAddressError(
                f"--metrics-targets: {path} cannot be written: {error.strerror}"
            ) from error
        self._written = text

    def close(self) -> None:
        """Nothing is there to be scraped any more."""
        self.url, self._nodes = None, {}
        with suppress(MetricsAddressError):  # it is said already, or the disk is full at the end
            self.write()

    def linger(self, enough: Callable[[], bool]) -> None:
        """Keeps the last values served for a while, unless the operator has had enough."""
        until = time.monotonic() + self._options.linger_s
        while self.url is not None and not enough() and time.monotonic() < until:
            time.sleep(LOOK_S)


@contextmanager
def watched_by_prometheus(metrics: SweepMetrics, options: MetricsOptions) -> Iterator[Seen]:
    """Serves the metrics if that is wished for, and says where.

    Raises:
        MetricsAddressError: the address is none of this machine's, or the file of targets cannot
            be written.
    """
    seen = Seen(options)
    with ExitStack() as stack:
        if options.port is not None:
            exposition, port = metrics.exposition, options.port
            seen.url = stack.enter_context(served(exposition, port, options.address, seen.targets))
        seen.write()
        stack.callback(seen.close)
        yield seen
