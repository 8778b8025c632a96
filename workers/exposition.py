"""Metrics as Prometheus reads them: declared once, kept, and served.

The only door to ``prometheus_client``. A metric is declared as a value; the table in the
documentation, the dashboards' check and the registries are all made of these declarations. No
id of an attempt or a try is ever a label.
"""

from __future__ import annotations

import errno
import json
import socket
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from socketserver import TCPServer, ThreadingMixIn
from typing import Any, Literal
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    disable_created_metrics,
    make_wsgi_app,
)
from prometheus_client.openmetrics.exposition import generate_latest

PREFIX = "apiary_"
STOP_S = 5.0

Labels = tuple[str, ...]
Targets = Callable[[], Sequence[Mapping[str, Any]]]
"""Gives what Prometheus is to scrape, as its ``http_sd_config`` and ``file_sd_config`` want it."""


class MetricsAddressError(Exception):
    """Metrics cannot be served where they should be; the message says why."""


@dataclass(frozen=True)
class Metric:
    """A declared metric."""

    name: str
    """Without the prefix, and without the ``_total`` that counters end with when they are read."""
    kind: Literal["counter", "gauge", "histogram"]
    help: str
    unit: str = ""
    """``seconds``, ``bytes``, ``usd``, ``ratio``; empty for plain counts."""
    labels: Labels = ()
    buckets: tuple[float, ...] = ()
    """Upper bounds of a histogram's."""

    @property
    def exposed(self) -> str:
        """The name that a query uses; a histogram's is followed by ``_bucket`` and so on."""
        return f"{PREFIX}{self.name}{'_total' if self.kind == 'counter' else ''}"


class Exposition:
    """The values of some declared metrics; safe to be used by several threads."""

    def __init__(self, metrics: Iterable[Metric]) -> None:
        """Every metric without labels is there from the start, at 0."""
        # The time of a counter's birth would be one more series for each, and tells nothing here.
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self._registry = CollectorRegistry(auto_describe=True)
        self._made: dict[str, Any] = {}
        self._replaced: dict[str, Mapping[Labels, float]] = {}
        self.metrics = tuple(metrics)
        for metric in self.metrics:
            self._made[metric.name] = self._make(metric)

    def born(self, metric: Metric, labels: Labels) -> None:
        """A counter or histogram starts at 0, so that its first event shows as an increase."""
        self._of(metric, labels)

    def add(self, metric: Metric, amount: float = 1.0, labels: Labels = ()) -> None:
        """Counts; a negative amount is an error."""
        self._of(metric, labels).inc(amount)

    def set(self, metric: Metric, value: float, labels: Labels = ()) -> None:
        """Sets a gauge."""
        self._of(metric, labels).set(value)

    def live(self, metric: Metric, read: Callable[[], float], labels: Labels = ()) -> None:
        """A gauge that is read anew, in the server's thread, whenever somebody looks."""
        self._of(metric, labels).set_function(read)

    def observe(self, metric: Metric, value: float, labels: Labels = ()) -> None:
        """Adds a value to a histogram."""
        self._of(metric, labels).observe(value)

    def replace(self, metric: Metric, values: Mapping[Labels, float]) -> None:
        """Sets a gauge's series to these and no others; for one caller at a time."""
        gauge, before = self._made[metric.name], self._replaced.get(metric.name, {})
        for labels, value in values.items():
            if before.get(labels) != value:
                gauge.labels(*labels).set(value)
        for labels in before.keys() - values.keys():
            gauge.remove(*labels)
        self._replaced[metric.name] = dict(values)

    def text(self) -> bytes:
        """All values in the OpenMetrics text format, version 1.0."""
        return bytes(generate_latest(self._registry))  # type: ignore[no-untyped-call]

    def application(self) -> Any:
        """The WSGI application that answers a scrape in the format that is asked for."""
        return make_wsgi_app(self._registry)

    def _make(self, metric: Metric) -> Any:
        name, labels = PREFIX + metric.name, metric.labels
        match metric.kind:
            case "counter":
                return Counter(name, metric.help, labels, registry=self._registry)
            case "gauge":
                return Gauge(name, metric.help, labels, registry=self._registry)
            case "histogram":
                return Histogram(
                    name, metric.help, labels, registry=self._registry, buckets=metric.buckets
                )

    def _of(self, metric: Metric, labels: Labels) -> Any:
        made = self._made[metric.name]
        return made.labels(*labels) if metric.labels else made


@contextmanager
def served(
    exposition: Exposition, port: int, address: str, targets: Targets | None = None
) -> Iterator[str]:
    """Serves ``/metrics``, and ``/targets`` for Prometheus' ``http_sd_config``, while it is open.

    Args:
        exposition: what to serve.
        port: where; if it is taken, a free one is. 0 takes a free one.
        address: the interface, for example ``127.0.0.1``.
        targets: what ``/targets`` answers; null: nothing stands there.

    Yields:
        The URL of the metrics.

    Raises:
        MetricsAddressError: the address is none of this machine's, or no port is free.
    """
    server = _server(address, port, _routes(exposition.application(), targets))
    thread = threading.Thread(target=server.serve_forever, name="metrics", daemon=True)
    thread.start()
    host = f"[{address}]" if ":" in address else address
    try:
        yield f"http://{host}:{server.server_port}/metrics"
    finally:
        server.shutdown()
        server.server_close()
        thread.join(STOP_S)


class _Server(ThreadingMixIn, WSGIServer):
    """A slow scraper holds up nobody else, and the end of the process waits for none."""

    daemon_threads = True
    request_queue_size = 32

    def server_bind(self) -> None:
        """Without looking up the address' name, which takes as long as a resolver likes."""
        TCPServer.server_bind(self)
        self.server_name, self.server_port = str(self.server_address[0]), self.server_address[1]
        self.setup_environ()


class _Quiet(WSGIRequestHandler):
    timeout = 10  # seconds for a request's head: a connection that says nothing is closed

    def log_message(self, format: str, *values: Any) -> None:
        """Says nothing of each scrape."""


class _Server6(_Server):
    address_family = socket.AF_INET6


def _server(address: str, port: int, application: Any) -> WSGIServer:
    kind = _Server6 if ":" in address else _Server
    try:
        return make_server(address, port, application, kind, handler_class=_Quiet)
    except OSError as error:
        fault = error
    if port and fault.errno == errno.EADDRINUSE:
        return _server(address, 0, application)
    raise MetricsAddressError(
        f"serve metrics on {address} port {port}: {fault.strerror}"
    ) from fault


def _routes(metrics: Any, targets: Targets | None) -> Any:
    def answer(environ: dict[str, Any], start_response: Any) -> Any:
        match environ.get("PATH_INFO"):
            case "/metrics":
                return metrics(environ, start_response)
            case "/targets" if targets is not None:
                start_response("200 OK", [("Content-Type", "application/json")])
                return [json.dumps(list(targets())).encode()]
            case _:
                start_response("404 Not Found", [("Content-Type", "text/plain")])
                return [b"see /metrics\n"]

    return answer
