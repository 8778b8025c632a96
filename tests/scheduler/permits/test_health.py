"""Which endpoints are down."""

from __future__ import annotations

from scheduler.permits.health import EndpointHealth
from workers.contract.permits import EndpointNews

FAILING = EndpointNews(failures=9, agents=3, failing_s=12.0, idle_s=0.5)
FINE = EndpointNews(ok=7, idle_s=0.5, ok_sent_s=4.0)


class Heard:
    """Health with a clock of its own."""

    def __init__(self) -> None:
        self.now = 0.0
        self.health = EndpointHealth(lambda: self.now)

    def say(self, **nodes: EndpointNews) -> None:
        for node, news in nodes.items():
            self.health.heard(node, {"e": news})


def changed(news: EndpointNews, **changes: object) -> EndpointNews:
    return EndpointNews.model_validate({**news.model_dump(), **changes})


def test_it_is_down_where_all_nodes_fail_and_up_with_the_first_new_success() -> None:
    heard = Heard()
    heard.say(n1=FAILING, n2=FAILING)
    down = heard.health.judge().down
    assert down == {"e": "18 requests in a row failed on all 2 nodes that asked"}
    assert heard.health.judge() == ({}, (), {})
    heard.say(n1=FAILING)
    assert heard.health.judge().up == ()
    heard.say(n1=changed(FINE, ok=1))
    assert heard.health.judge().up == ("e",)
    assert heard.health.judge() == ({}, (), {})


def test_it_takes_time_and_several_requests_of_several_agents() -> None:
    for lacking in ({"failures": 4}, {"agents": 1}, {"failing_s": 9.0}, {"idle_s": None}):
        heard = Heard()
        heard.say(n1=changed(FAILING, **lacking))
        assert heard.health.judge() == ({}, (), {}), lacking


def test_an_answer_from_before_the_failures_is_no_witness() -> None:
    heard = Heard()
    heard.now = 100.0
    # It came just now, and was sent when the failing began.
    heard.say(n1=FAILING, n2=changed(FINE, ok_sent_s=11.0))
    assert "e" in heard.health.judge().down


def test_failures_of_long_ago_say_nothing() -> None:
    heard = Heard()
    heard.say(n1=changed(FAILING, idle_s=31.0))
    assert heard.health.judge() == ({}, (), {})


def test_a_node_that_has_not_asked_since_it_is_back_is_not_blamed() -> None:
    heard = Heard()
    heard.say(n1=FAILING, n2=FAILING)
    heard.health.judge()
    heard.now = 60.0
    heard.say(n1=changed(FINE, ok=1), n2=changed(FAILING, failing_s=72.0))
    assert heard.health.judge() == ({}, ("e",), {})
    heard.now = 75.0
    heard.say(n1=changed(FINE, ok=9), n2=changed(FAILING, failing_s=87.0, idle_s=14.0))
    assert heard.health.judge() == ({}, (), {})
    heard.say(n2=changed(FAILING, failing_s=87.0))
    assert list(heard.health.judge().cut_off) == ["n2"]


def test_one_node_alone_is_the_one_that_is_cut_off() -> None:
    heard = Heard()
    heard.say(n1=FAILING, n2=FINE)
    found = heard.health.judge()
    assert (found.down, list(found.cut_off)) == ({}, ["n1"])
    heard.health.lost("n1")
    assert heard.health.judge() == ({}, (), {})


def test_another_process_under_the_name_is_no_success() -> None:
    heard = Heard()
    heard.say(n1=changed(FAILING, ok=5))
    assert heard.health.judge().down
    heard.say(n1=changed(FAILING, ok=0))
    assert heard.health.judge().up == ()
