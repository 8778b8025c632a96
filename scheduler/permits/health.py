"""Which endpoints are down, from the requests of all nodes. Pure.

An endpoint is down if the nodes that ask it have seen nothing but failures for ten seconds, at
least five of them, of at least two agents, and no other node has had an answer since. One agent's
requests may be what the provider stumbles over, and one node's network may be what is broken:
while another node has its answers, it is the failing node's breaker that opens. An answer counts
for that if it was asked for two seconds into the failing or later: what was under way before
shows nothing of what is asked now.

It is back with the first success that was asked for after the failures began, of a probe of the
queue's or of a trial that is still under way.

*Within what time:* a connection that is refused, or a 5xx, fails at once, so cells are parked ten
seconds after the first failure and one or two polls more. A host that does not answer at all
fails after the ten seconds of a connection attempt, counted from its start. One that takes
requests and then is silent cannot be told from a model that thinks: it is found by the trials
that end for it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from workers.contract.permits import EndpointNews

FAILURES = 5
AGENTS = 2
FAILING_S = 10.0
LATELY_S = 30.0
INTO_S = 2.0


class Verdicts(NamedTuple):
    """What is found, each with the reason."""

    down: Mapping[str, str]
    """Endpoints."""
    up: tuple[str, ...]
    """Endpoints that were down."""
    cut_off: Mapping[str, str]
    """Nodes that cannot reach an endpoint which others reach."""


@dataclass
class _Seen:
    news: EndpointNews
    heard_at: float
    fresh_ok: bool = False
    """Whether it had a success since the last judgement."""

    @property
    def asked_at(self) -> float:
        """When it had its last answer, or none; in the far past: never."""
        return float("-inf") if self.news.idle_s is None else self.heard_at - self.news.idle_s

    @property
    def ok_sent_at(self) -> float:
        """When its last success was sent; in the far past: never."""
        sent_s = self.news.ok_sent_s
        return float("-inf") if sent_s is None else self.heard_at - sent_s

    @property
    def begun_at(self) -> float:
        """When the first of its failures was sent."""
        return self.heard_at - self.news.failing_s


class EndpointHealth:
    """What nodes say of the endpoints of a sweep."""

    def __init__(self, clock: Callable[[], float]) -> None:
        """Nothing was heard; ``clock`` is monotonic seconds."""
        self._clock = clock
        self._seen: dict[str, dict[str, _Seen]] = {}
        self._down: set[str] = set()
        self._up_at: dict[str, float] = {}

    def heard(self, node: str, endpoints: Mapping[str, EndpointNews]) -> None:
        """A node has answered."""
        now = self._clock()
        for name, news in endpoints.items():
            nodes = self._seen.setdefault(name, {})
            before = nodes.get(node)
            fresh = before is not None and (before.fresh_ok or news.ok > before.news.ok)
            nodes[node] = _Seen(news, now, fresh)

    def lost(self, node: str) -> None:
        """A node is gone, and what it has seen with it."""
        for nodes in self._seen.values():
            nodes.pop(node, None)

    def judge(self) -> Verdicts:
        """What follows from what was heard."""
        now = self._clock()
        down: dict[str, str] = {}
        up: list[str] = []
        cut_off: dict[str, str] = {}
        for name, nodes in self._seen.items():
            if name in self._down:
                if any(seen.fresh_ok for seen in nodes.values()):
                    self._down.discard(name)
                    up.append(name)
                    self._up_at[name] = now
            else:
                since = self._up_at.get(name, float("-inf"))
                failing = {n: seen for n, seen in nodes.items() if _is_failing(seen, since, now)}
                if not failing:
                    continue
                begun = max(seen.begun_at for seen in failing.values())
                if not any(_is_witness(seen, begun, now) for seen in nodes.values()):
                    if _is_enough(*failing.values()):
                        self._down.add(name)
                        down[name] = _reason(failing)
                    continue
                for node, seen in failing.items():
                    if _is_enough(seen):
                        cut_off[node] = (
                            f"{seen.news.failures} requests in a row to endpoint {name} "
                            "failed, and other nodes have their answers"
                        )
        for nodes in self._seen.values():
            for seen in nodes.values():
                seen.fresh_ok = False
        return Verdicts(down, tuple(up), cut_off)


def _is_failing(seen: _Seen, up_at: float, now: float) -> bool:
    """Whether a node has failed lately, and for long, since the endpoint was back last."""
    return (
        seen.news.failures > 0
        and now - seen.asked_at <= LATELY_S
        and now - seen.begun_at >= FAILING_S
        and seen.asked_at - up_at >= FAILING_S
    )


def _is_witness(seen: _Seen, begun_at: float, now: float) -> bool:
    """Whether a node has had its answers while others failed."""
    return (
        seen.news.failures == 0
        and now - seen.asked_at <= LATELY_S
        and seen.ok_sent_at - begun_at >= INTO_S
    )


def _is_enough(*failing: _Seen) -> bool:
    return (
        sum(each.news.failures for each in failing) >= FAILURES
        and sum(each.news.agents for each in failing) >= AGENTS
    )


def _reason(failing: Mapping[str, _Seen]) -> str:
    count = sum(each.news.failures for each in failing.values())
    where = "the node" if len(failing) == 1 else f"all {len(failing)} nodes"
    return f"{count} requests in a row failed on {where} that asked"
