"""What a slow reader gets: every answer, live events up to a bound, then the end (§1.3)."""

from __future__ import annotations

import asyncio
import json

from workers.nostr.event import Event
from workers.nostr.keys import Keypair
from workers.relay.limits import Limits
from workers.relay.outbox import Delivery, QueueOutbox

LIMITS = Limits(send_buffer=3, slow_grace=2)


def test_1_3_answers_and_events_keep_their_order() -> None:
    async def scenario() -> None:
        outbox = QueueOutbox(LIMITS)
        outbox.reply("1")
        outbox.push("2")
        assert [await outbox.take(), await outbox.take()] == ["1", "2"]
        waiting = asyncio.create_task(outbox.take())
        await asyncio.sleep(0)
        outbox.push("3")
        assert await waiting == "3"

    asyncio.run(scenario())


def test_1_3_answers_are_never_dropped_and_hold_the_reader_up() -> None:
    async def scenario() -> None:
        outbox = QueueOutbox(LIMITS)
        for number in range(5):
            outbox.reply(str(number))
        drained = asyncio.create_task(outbox.drained())
        await asyncio.sleep(0)
        assert not drained.done()
        assert [await outbox.take() for _ in range(3)] == ["0", "1", "2"]
        await asyncio.wait_for(drained, 1)

    asyncio.run(scenario())


def test_1_3_a_reader_that_stays_too_slow_is_given_up() -> None:
    async def scenario() -> None:
        outbox = QueueOutbox(LIMITS)
        for number in range(4):
            outbox.push(str(number))
        assert await outbox.take() == "0"
        outbox.push("fits")
        outbox.push("one too many")
        assert await outbox.take() is None
        await asyncio.wait_for(outbox.drained(), 1)
        outbox.reply("late")
        assert await outbox.take() is None

    asyncio.run(scenario())


def test_1_3_what_waits_is_sent_before_the_end() -> None:
    async def scenario() -> None:
        outbox = QueueOutbox(LIMITS)
        outbox.reply("last word")
        outbox.end()
        outbox.reply("too late")
        assert await outbox.take() == "last word"
        assert await outbox.take() is None

    asyncio.run(scenario())


class Counted(Delivery):
    """An event whose text is counted as it is made."""

    made = 0

    def text(self) -> str:
        Counted.made += 1
        return super().text()


def test_1_3_the_text_of_an_event_is_made_when_it_is_sent() -> None:
    async def scenario() -> None:
        outbox = QueueOutbox(LIMITS)
        event = Event.sign(Keypair.generate(), 0, (), "{}", 1)
        outbox.reply(Counted("s", event))
        assert Counted.made == 0
        text = await outbox.take()
        assert text is not None
        assert json.loads(text) == ["EVENT", "s", event.to_dict()]
        assert Counted.made == 1

    asyncio.run(scenario())
