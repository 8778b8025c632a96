"""The window and the pace of one account."""

from __future__ import annotations

from typing import Any

import pytest

from scheduler.permits.account import FIRST_WINDOW, PAUSE_S, AccountControl, Given
from workers.contract.permits import AccountNews


class Account:
    """A control and the word of one node."""

    def __init__(self, **given: Any) -> None:
        self.control = AccountControl(Given(**given), 0.0)
        self.now = 0.0
        self.said = AccountNews(permits=0)

    def hear(self, seconds: float = 1.0, *, wanted: bool = True, **more: int) -> None:
        """After so many seconds: counts that grew, and what is."""
        self.now += seconds
        grown = ("started", "ok", "refused", "failed")
        fields = {name: getattr(self.said, name) + more.pop(name, 0) for name in grown}
        fields["round"] = more.pop("round", self.control.round)
        in_use = more.get("in_use", 10)
        news = AccountNews.model_validate({"permits": 0, **fields, **more})
        self.control.heard(self.said, news, in_use, wanted, self.now)
        self.said = news

    def refuse(self, **more: Any) -> None:
        self.hear(started=1, refused=1, refused_in_round=1, **more)


def test_it_starts_small_and_doubles_with_every_round_trip() -> None:
    account = Account()
    assert account.control.window == FIRST_WINDOW
    windows = []
    for _ in range(3):
        account.hear(started=account.control.window, ok=account.control.window)
        windows.append(account.control.window)
    assert windows == [20, 40, 80]
    assert account.control.requests_per_s is None


def test_what_is_not_used_does_not_grow() -> None:
    account = Account()
    account.hear(started=100, ok=100, wanted=False)
    assert account.control.window == FIRST_WINDOW


def test_a_refusal_takes_it_to_four_fifths_of_what_was_under_way_once_a_round_trip() -> None:
    account = Account()
    account.hear(started=200, ok=190, in_use=100)
    account.refuse(in_use=101, latency_s=3)
    assert account.control.window == 80
    assert account.control.round == 1
    # Of an earlier round, and of the same round trip: the same excess.
    account.hear(refused=50, refused_in_round=50, round=0, in_use=90)
    account.refuse(in_use=90, latency_s=3)
    assert account.control.window == pytest.approx(80, abs=2)
    account.refuse(seconds=9.0, in_use=80, latency_s=3)
    assert account.control.window == pytest.approx(80, abs=2)  # 100 went well within the minute.


def test_a_window_of_one_is_the_least() -> None:
    account = Account()
    for _ in range(50):
        account.refuse(seconds=70.0, in_use=1)
    assert account.control.window == 1


def test_failures_pause_growth_and_take_nothing_away() -> None:
    account = Account()
    account.hear(started=30, ok=20, failed=10)
    account.hear(started=30, ok=30)
    assert account.control.window == FIRST_WINDOW
    account.hear(PAUSE_S, started=30, ok=30)
    assert account.control.window == FIRST_WINDOW + 30


def test_a_pace_is_what_passed_between_refusals() -> None:
    account = Account()
    for _ in range(60):
        account.hear(started=10, ok=10, in_use=30)
    account.refuse(in_use=20)
    assert account.control.requests_per_s == pytest.approx(0.8 * 10, rel=0.05)
    for _ in range(20):
        account.hear(started=8, ok=8)
    assert 8 < (account.control.requests_per_s or 0) <= 10.1


def test_more_under_way_without_a_refusal_shows_that_it_is_not_the_number() -> None:
    account = Account()
    account.hear(started=100, ok=100, in_use=50)
    account.refuse(in_use=20)
    assert account.control.requests_per_s is not None
    other = Account()
    other.hear(started=100, ok=100, in_use=50)
    other.refuse(in_use=51)
    assert other.control.requests_per_s is None


def test_refusals_always_at_the_same_number_are_the_number() -> None:
    account = Account()
    for _ in range(4):
        account.hear(seconds=60.0, started=100, ok=100, in_use=40)
        account.refuse(in_use=41, asked_to_wait=True)
    assert account.control.requests_per_s is None
    assert account.control.window == 32


def test_given_limits_bound_from_the_start() -> None:
    account = Account(concurrency=4, requests_per_s=2.0, tokens_per_s=100.0)
    assert account.control.window == 4
    assert account.control.requests_per_s == pytest.approx(1.96)
    assert account.control.tokens_per_s == pytest.approx(98.0)
    account.hear(limit_requests_per_s=1.0, limit_tokens_per_s=500.0)
    assert account.control.requests_per_s == pytest.approx(0.98)
    assert account.control.tokens_per_s == pytest.approx(98.0)


def test_no_refusal_at_all_leaves_nothing_but_a_wide_window() -> None:
    account = Account()
    for _ in range(20):
        account.hear(started=500, ok=500)
    assert account.control.window > 5000
    assert account.control.requests_per_s is None
