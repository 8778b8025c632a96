from __future__ import annotations

import pytest

from workers.agent.doorkeeper import Doorkeeper
from workers.agent.inbox import Inbox
from workers.agent.relay_rules import MEMBERSHIP
from workers.nostr.event import Event


class Link:
    """Keeps what a doorkeeper asks of its link."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, str]] = []

    def subscribe(self, channel: str, since: int) -> None:
        self.calls.append(("subscribe", channel))

    def unsubscribe(self, channel: str) -> None:
        self.calls.append(("unsubscribe", channel))


def membership(kind: int, channel: str, created_at: int) -> Event:
    return Event("0" * 64, "r" * 64, created_at, kind, (("h", channel),), "", "0" * 128)


def test_memberships_are_followed_newest_first_and_only_where_allowed() -> None:
    link = Link()
    keeper = Doorkeeper("me", ("a",), Inbox(), list)
    keeper.link = link
    for event in (
        membership(44100, "b", 10),
        membership(44100, "a", 10),
        membership(44101, "a", 9),
        membership(44101, "a", 10),
        membership(44100, "a", 11),
    ):
        keeper.arrived("membership-notif", event)
    assert link.calls == [("subscribe", "a"), ("unsubscribe", "a"), ("subscribe", "a")]


def test_other_s_messages_are_mentions_and_own_ones_are_not() -> None:
    inbox = Inbox()
    keeper = Doorkeeper("me", (), inbox, list)
    own = Event("1" * 64, "me", 1, 9, (), "", "0" * 128)
    other = Event("2" * 64, "you", 1, 9, (), "", "0" * 128)
    keeper.arrived("ch-a", own)
    keeper.arrived("ch-a", other)
    assert inbox.next_batch(0) == ("a", [other])


def test_all_channels_are_discovered_only_where_all_are_allowed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for allowed, expected in (((), [("subscribe", "x")]), (("a",), [])):
        link = Link()
        keeper = Doorkeeper("me", allowed, Inbox(), lambda: ["x"])
        keeper.link = link
        keeper.live(MEMBERSHIP)
        assert link.calls == expected
    keeper = Doorkeeper("me", (), Inbox(), list)
    keeper.live("ch-a")
    assert capsys.readouterr().out.endswith("Z subscribed to channel a\n")


def test_a_membership_that_ends_drops_what_waits() -> None:
    inbox = Inbox()
    keeper = Doorkeeper("me", (), inbox, list)
    keeper.link = Link()
    keeper.arrived("ch-a", Event("2" * 64, "you", 1, 9, (), "", "0" * 128))
    keeper.arrived(MEMBERSHIP, membership(44101, "a", 5))
    assert inbox.next_batch(0) is None
