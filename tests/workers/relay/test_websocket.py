"""The time in which a key must be proved (§1.3). Frames and ends are in ``test_server``."""

from __future__ import annotations

import asyncio

import pytest

from tests.workers.relay.builders import Talker, World
from workers.relay.limits import Limits
from workers.relay.outbox import QueueOutbox
from workers.relay.websocket import _end_unless_proven


@pytest.mark.parametrize("is_proven", [False, True])
def test_1_3_only_who_has_proved_a_key_stays(is_proven: bool) -> None:
    async def scenario() -> None:
        world = World()
        talker = Talker(world)
        if is_proven:
            talker.log_in(world.agent)
        outbox = QueueOutbox(Limits())
        _end_unless_proven(talker.session, outbox)
        outbox.reply("more")
        assert await outbox.take() == ("more" if is_proven else None)

    asyncio.run(scenario())
