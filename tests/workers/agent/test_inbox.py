from __future__ import annotations

import threading

from hypothesis import given
from hypothesis import strategies as st

from workers.agent.inbox import BATCH_LIMIT, PENDING_LIMIT, Inbox
from workers.nostr.event import Event


def event(number: int, created_at: int = 1000) -> Event:
    return Event(f"{number:064x}", "a" * 64, created_at, 9, (), str(number), "0" * 128)


def test_a_batch_is_all_that_waits_in_the_oldest_channel_by_time() -> None:
    inbox = Inbox()
    inbox.put("b", event(1, 1005))
    inbox.put("a", event(2, 1001))
    inbox.put("b", event(3, 1002))
    assert inbox.next_batch() == ("b", [event(3, 1002), event(1, 1005)])
    assert inbox.next_batch() == ("a", [event(2, 1001)])
    assert inbox.next_batch(0) is None


def test_more_is_taken_without_waiting() -> None:
    inbox = Inbox()
    assert inbox.take_more("a") == []
    inbox.put("a", event(1))
    inbox.put("b", event(2))
    assert inbox.take_more("a") == [event(1)]
    assert inbox.take_more("a") == []
    assert inbox.next_batch() == ("b", [event(2)])


def test_a_dropped_channel_and_a_closed_inbox_give_nothing() -> None:
    inbox = Inbox()
    inbox.put("a", event(1))
    inbox.drop("a")
    assert inbox.next_batch(0) is None
    inbox.put("a", event(1))
    inbox.close()
    assert inbox.next_batch() is None


def test_who_waits_is_woken() -> None:
    inbox = Inbox()
    found: list[object] = []
    waiter = threading.Thread(target=lambda: found.append(inbox.next_batch(20)))
    waiter.start()
    inbox.put("a", event(1))
    waiter.join(20)
    assert found == [("a", [event(1)])]


def test_the_oldest_are_dropped_where_too_many_wait() -> None:
    inbox = Inbox()
    for number in range(PENDING_LIMIT + 10):
        inbox.put("a", event(number))
    seen = []
    while (batch := inbox.next_batch(0)) is not None:
        assert len(batch[1]) <= BATCH_LIMIT
        seen += batch[1]
    assert seen == [event(number) for number in range(10, PENDING_LIMIT + 10)]


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 3)), max_size=40))
def test_every_event_comes_out_once_and_in_order(puts: list[tuple[str, int]]) -> None:
    inbox = Inbox()
    expected: dict[str, list[Event]] = {}
    for number, (channel, moment) in enumerate(puts):
        inbox.put(channel, event(number, moment))
        expected.setdefault(channel, []).append(event(number, moment))
    found = {}
    while (batch := inbox.next_batch(0)) is not None:
        found[batch[0]] = batch[1]
    assert found == {c: sorted(es, key=lambda e: e.created_at) for c, es in expected.items()}
