from __future__ import annotations

from typing import Any

import pytest

from tests.workers.agent.worlds import World, open_model
from workers.agent.bridge import Bridge, BridgeError
from workers.agent.identity import Identity
from workers.nostr.event import Event
from workers.nostr.keys import Keypair


def bridge(url: str, waits: list[float]) -> Bridge:
    identity = Identity(Keypair.generate(), None)
    return Bridge(url, identity, timeout_s=5, sleep=waits.append, jitter=lambda: 1.0)


def answering(*answers: tuple[int, Any]) -> Any:
    rest = list(answers)
    return lambda _path, _body: rest.pop(0)


def test_a_busy_relay_is_asked_three_times_with_fresh_authorisation() -> None:
    waits: list[float] = []
    answers = answering((503, {"error": "busy"}), (502, b"bad gateway"), (200, []))
    with open_model(answers) as server:
        assert bridge(server.url, waits).query({"kinds": [0]}) == []
        headers = [request[1]["authorization"] for request in server.requests]
    assert waits == [0.5, 1.5]
    assert len(set(headers)) == 3


def test_a_rate_limit_says_how_long_to_wait_but_not_for_ever() -> None:
    waits: list[float] = []
    text = "rate-limited: quota exceeded; retry in {}s"
    answers = answering(
        (429, {"error": text.format(7)}), (429, {"error": text.format(900)}), (200, [])
    )
    with open_model(answers) as server:
        bridge(server.url, waits).query({})
    assert waits == [7.0, 30.0]


@pytest.mark.parametrize(
    ("answers", "status", "unsent"),
    [
        ([(400, {"error": "invalid: no"})], 400, False),
        ([(403, {"message": "not you"})], 403, False),
        ([(503, {})] * 3, 503, False),
        ([(429, {})] * 3, 429, True),
        ([(200, b"not json")] * 3, 0, False),
    ],
)
def test_a_failure_for_good(answers: list[tuple[int, Any]], status: int, unsent: bool) -> None:
    with open_model(answering(*answers)) as server:
        with pytest.raises(BridgeError) as caught:
            bridge(server.url, []).query({})
        assert len(server.requests) == len(answers)
    assert (caught.value.status, caught.value.unsent) == (status, unsent)


@pytest.mark.parametrize("answer", [{"not": "a list"}, [{"id": "x"}]])
def test_an_answer_of_another_form_is_an_error(answer: Any) -> None:
    with open_model(answering((200, answer))) as server, pytest.raises(BridgeError):
        bridge(server.url, []).query({})


def test_nobody_there_is_certainly_unsent() -> None:
    with pytest.raises(BridgeError) as caught:
        bridge("http://127.0.0.1:1", []).query({})
    assert (caught.value.status, caught.value.unsent) == (0, True)


def test_the_same_event_twice_is_no_fault(world: World) -> None:
    own = Bridge(f"http://{world.host}", world.agent.identity())
    event = own.identity.sign(9, [("h", world.channel)], "once")
    assert own.publish(event).message == ""
    again = own.publish(event)
    assert again.accepted
    assert again.message.startswith("duplicate:")


def test_pages_are_read_to_the_end() -> None:
    keypair = Keypair.generate()
    stored = [Event.sign(keypair, 9, (), str(n), 1000 - n // 3) for n in range(502)]
    stored.sort(key=lambda event: (-event.created_at, event.id))

    def answer(_path: str, body: Any) -> tuple[int, Any]:
        (wanted,) = body
        start = 0
        if "before_id" in wanted:
            start = [event.id for event in stored].index(wanted["before_id"]) + 1
            assert stored[start - 1].created_at == wanted["until"]
        return 200, [e.to_dict() for e in stored[start : start + wanted["limit"]]]

    with open_model(answer) as server:
        found = bridge(server.url, []).query_all({"kinds": [9]})
        assert len(server.requests) == 2
    assert found == stored
