"""How requests to an endpoint fare on a node."""

from __future__ import annotations

from workers.permits.health import AGENTS_COUNTED, Health


def test_failures_count_since_the_last_success() -> None:
    health = Health()
    assert health.news(0.0).idle_s is None
    for second in range(3):
        health.failed(f"a{second % 2}", float(second), second + 0.5)
    news = health.news(10.0)
    assert (news.failures, news.agents, news.failing_s, news.idle_s) == (3, 2, 10.0, 7.5)
    health.succeeded(4.0, 11.0)
    news = health.news(11.0)
    assert (news.ok, news.failures, news.agents, news.failing_s) == (1, 0, 0, 0.0)


def test_an_answer_that_was_under_way_before_the_failures_shows_nothing() -> None:
    health = Health()
    health.failed("a", 5.0, 5.1)
    health.succeeded(4.9, 6.0)
    assert (health.news(6.0).failures, health.news(6.0).ok) == (1, 0)
    health.succeeded(5.0, 6.0)
    assert (health.news(6.0).failures, health.news(6.0).ok) == (0, 1)


def test_a_failure_counts_from_when_its_request_was_sent() -> None:
    health = Health()
    health.failed("a", 20.0, 20.1)
    health.failed("b", 8.0, 20.2)  # Ten seconds of connecting.
    assert health.news(20.2).failing_s == 20.2 - 8.0


def test_agents_are_counted_as_far_as_it_matters() -> None:
    health = Health()
    for number in range(1000):
        health.failed(f"a{number}", 0.0, 1.0)
    assert health.news(1.0).agents == AGENTS_COUNTED
