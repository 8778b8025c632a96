"""Many random, altered and forged messages break no invariant, and the judge would see one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.workers.relay.fuzzing.campaign import Campaign, Tally
from tests.workers.relay.fuzzing.judge import BrokenInvariantError
from workers.nostr.event import Event
from workers.relay import hub, rules
from workers.relay.answer import Answer
from workers.relay.groups import Groups
from workers.relay.ingest import Ingest

pytestmark = pytest.mark.long

GROWTH_KIB = 48 * 1024


def has_worked(tally: Tally) -> bool:
    """Whether all sorts of messages and the usual answers occurred."""
    return (
        len(tally.sorts) == 12
        and tally.stored > 0
        and tally.deliveries > 0
        and tally.answers["EOSE"] > 0
        and tally.grown_kib < GROWTH_KIB
    )


def test_two_thousand_messages_break_no_invariant() -> None:
    assert has_worked(Campaign(seed=20).run(messages=2000))


def test_a_minute_of_messages_breaks_no_invariant() -> None:
    assert has_worked(Campaign(seed=21).run(seconds=60))


def everything_is_readable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Groups, "readable", lambda self, pubkey: frozenset(self._channels))
    monkeypatch.setattr("workers.relay.query.may_see", lambda *_: True)


def everything_is_delivered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub, "may_see", lambda *_: True)
    monkeypatch.setattr(hub.Hub, "revoke", lambda self, channel: None)


def everything_is_delivered_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    publish = hub.Hub.publish
    monkeypatch.setattr(
        hub.Hub, "publish", lambda self, stored: [publish(self, stored) for _ in range(2)]
    )


def no_rule(words: str) -> Callable[[pytest.MonkeyPatch], None]:
    """A relay that does not refuse with these words."""

    def apply(monkeypatch: pytest.MonkeyPatch) -> None:
        judge = rules.before_storage

        def lenient(event: Event, author: str, state: Any, *, over_http: bool) -> Answer | None:
            answer = judge(event, author, state, over_http=over_http)
            return None if answer is not None and words in answer.message else answer

        monkeypatch.setattr(rules, "before_storage", lenient)

    return apply


def anything_may_name_a_closed_channel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Ingest, "_names_closed_channel", lambda self, event: False)


@pytest.mark.parametrize(
    "damage",
    [
        everything_is_readable,
        everything_is_delivered,
        everything_is_delivered_twice,
        no_rule("signature"),
        no_rule("does not match authenticated identity"),
        anything_may_name_a_closed_channel,
    ],
)
def test_a_relay_without_one_of_its_rules_is_caught(
    damage: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    damage(monkeypatch)
    with pytest.raises(BrokenInvariantError):
        Campaign(seed=1).run(messages=6000)
