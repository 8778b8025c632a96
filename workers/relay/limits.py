"""The relay's limits (Buzz), in one place."""

from __future__ import annotations

from dataclasses import dataclass

from workers.relay.rates import NO_RATES, Rates


@dataclass(frozen=True)
class Limits:
    """Bounds of time, size and number. The defaults are Buzz's, unless said."""

    auth_timeout_s: float = 5.0
    """How long a connection may stay unauthenticated."""
    auth_tolerance_s: int = 60
    """How far an AUTH event's clock may be off."""
    event_tolerance_s: int = 900
    """How far an event's clock may be off."""
    replay_s: float = 120.0
    """How long a used HTTP authentication is remembered."""
    frame_bytes: int = 512 * 1024
    content_bytes: int = 256 * 1024
    body_bytes: int = 1024 * 1024
    """The largest HTTP body."""
    subscription_id_bytes: int = 256
    filters: int = 10
    """Filters in one REQ."""
    subscriptions: int = 1024
    """Subscriptions of one connection."""
    explicit_channels: int = 128
    """``#h`` values over all filters of one request."""
    page: int = 1000
    """Events that one filter gives, by default and at most."""
    thread_depth: int = 100
    send_buffer: int = 1000
    """Messages that wait for a slow reader before live ones are dropped."""
    slow_grace: int = 15
    """Dropped live messages after which a slow reader is disconnected."""
    ping_s: float = 30.0
    """Between two pings of a WebSocket client."""
    connections: int = 256
    """Open connections of one relay, WebSocket or HTTP (ours: a trial has a handful)."""
    request_s: float = 30.0
    """How long one request's head, and then its body, may take to arrive, and how long a
    connection may stay idle between two requests (ours)."""
    response_s: float = 60.0
    """How long a client may take to receive one answer over HTTP (ours)."""
    rates: Rates = NO_RATES
    """Quotas per key (ours: none, so that no trial waits for its own relay)."""
    stored_bytes: int = 64 * 1024 * 1024
    """Text that one relay holds (ours: a trial cannot fill the node's memory)."""
