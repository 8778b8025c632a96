"""Permits lent to nodes."""

from __future__ import annotations

import random

from scheduler.permits.lender import PermitLender, given_of
from tests.scheduler.permits.world import endpoint
from workers.contract.permits import AccountNews, Loan
from workers.contract.report import Progress

ACCOUNT = endpoint().account or ""


class Lending:
    """A lender with one account, and its clock."""

    def __init__(self, **fields: object) -> None:
        self.now = 0.0
        self.lender = PermitLender({"m": endpoint(**fields)}, lambda: self.now)

    def lend(self, node: str) -> Loan:
        return self.lender.lend(node)[ACCOUNT]

    def hear(self, node: str, **news: object) -> None:
        made = AccountNews.model_validate({"permits": 0, **news})
        self.lender.heard(node, Progress(node=node, free_slots=0, accounts={ACCOUNT: made}))


def test_the_first_orders_bring_permits() -> None:
    lending = Lending()
    assert [lending.lend(node).permits for node in ("a", "b")] == [10, 0]
    # What the first does not need comes back with its first word.
    lending.hear("a", permits=10)
    assert lending.lend("a").permits == 5
    lending.hear("a", permits=5)
    assert lending.lend("b").permits == 5


def test_no_more_is_out_than_there_is_whatever_gets_lost() -> None:
    draw = random.Random(3)
    lending = Lending(max_concurrency=17, requests_per_minute=600)
    told: dict[str, Loan] = {}
    in_force: dict[str, Loan] = {}
    for _ in range(3000):
        lending.now += 0.1
        node = draw.choice("abc")
        told[node] = lending.lend(node)
        if draw.random() < 0.7:
            in_force[node] = told[node]
        if draw.random() < 0.7 and node in in_force:
            loan = in_force[node]
            lending.hear(
                node,
                permits=loan.permits,
                requests_per_s=loan.requests_per_s,
                in_use=draw.randint(0, loan.permits),
                waiting=draw.choice([0, 0, 5, 50]),
            )
        assert sum(loan.permits for loan in in_force.values()) <= 17
        assert sum(loan.requests_per_s or 0 for loan in in_force.values()) <= 9.8 + 1e-6


def test_what_is_not_used_goes_to_those_that_wait() -> None:
    lending = Lending(max_concurrency=10)
    for _ in range(3):
        for node, waiting in (("a", 40), ("b", 0)):
            loan = lending.lend(node)
            in_use = loan.permits if waiting else 0
            lending.hear(node, permits=loan.permits, in_use=in_use, waiting=waiting)
    assert lending.lend("a").permits >= 9


def test_a_dead_node_s_permits_are_free() -> None:
    lending = Lending(max_concurrency=10)
    lending.lend("a")
    lending.hear("a", permits=10, in_use=10)
    assert lending.lend("b").permits == 0
    lending.lender.lost("a")
    assert lending.lend("b").permits == 10


def test_a_refusal_of_one_node_holds_all_of_them() -> None:
    lending = Lending()
    for node in "ab":
        lending.lend(node)
        lending.hear(node, permits=5)
    lending.hear(
        "a", permits=5, started=1, refused=1, refused_in_round=1, hold_s=7.0, asked_to_wait=True
    )
    lending.now = 2.0
    assert lending.lend("b").hold_s == 5.0
    assert lending.lend("b").round == 1
    (throttled,) = lending.lender.throttled(60.0)
    assert throttled.endpoints == ("m",)
    lending.now = 100.0
    assert lending.lender.throttled(60.0) == ()
    assert lending.lend("b").hold_s == 0.0


def test_where_the_provider_does_not_say_one_node_tries_first() -> None:
    lending = Lending()
    for node in "ab":
        lending.lend(node)
        lending.hear(node, permits=5)
    lending.hear("a", permits=5, started=1, refused=1, refused_in_round=1, hold_s=2.0)
    assert (lending.lend("a").hold_s, lending.lend("b").hold_s) == (2.0, 3.0)


def test_endpoints_that_share_an_account_share_its_least_limits() -> None:
    made = [
        endpoint(max_concurrency=4, requests_per_minute=60),
        endpoint(max_concurrency=9),
        endpoint(tokens_per_minute=600.0),
    ]
    given = given_of(made)
    assert (given.concurrency, given.requests_per_s, given.tokens_per_s) == (4, 1.0, 10.0)
