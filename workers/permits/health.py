"""How requests to one endpoint fare on this node: failures since the last success.

Only what the provider answers with 5xx, or not at all, is a failure. A refusal (429) shows an
endpoint that is busy, and a wrong request (any other 4xx) shows nothing: both leave the count
as it is. A success counts if its request was sent after the failing began, since an answer that
was under way before says nothing of what is asked now.
"""

from __future__ import annotations

from workers.contract.permits import EndpointNews

AGENTS_COUNTED = 16
"""More need not be told apart."""


class Health:
    """Of one endpoint on one node."""

    def __init__(self) -> None:
        self._ok = 0
        self._failures = 0
        self._agents: set[str] = set()
        self._since = 0.0
        self._seen_at: float | None = None
        self._ok_sent_at: float | None = None

    def succeeded(self, sent_at: float, now: float) -> None:
        """A request that was sent then has its answer now."""
        self._seen_at = now
        self._ok_sent_at = max(sent_at, self._ok_sent_at or sent_at)
        if self._failures and sent_at < self._since:
            return
        self._ok += 1
        self._failures = 0
        self._agents.clear()

    def failed(self, agent: str, sent_at: float, now: float) -> None:
        """A request that was sent then failed now."""
        self._seen_at = now
        self._since = min(self._since, sent_at) if self._failures else sent_at
        self._failures += 1
        if len(self._agents) < AGENTS_COUNTED:
            self._agents.add(agent)

    def news(self, now: float) -> EndpointNews:
        """What the driver should know."""
        return EndpointNews(
            ok=self._ok,
            failures=self._failures,
            agents=len(self._agents),
            failing_s=max(0.0, now - self._since) if self._failures else 0.0,
            ok_sent_s=None if self._ok_sent_at is None else max(0.0, now - self._ok_sent_at),
            idle_s=None if self._seen_at is None else max(0.0, now - self._seen_at),
        )
