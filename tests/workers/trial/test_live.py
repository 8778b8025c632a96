"""A trial that is followed while it runs: what is shown, and what never is."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from tests.workers.trial.stage import Stage, stage
from workers.contract.live import LiveTrial, live_trial_key, live_trial_prefix
from workers.contract.outcome import Phase, Verdict
from workers.contract.spec import attempt_id
from workers.contract.trial import TrialEnd

pytestmark = pytest.mark.docker

LEAK = (
    "env >&2; cat /proc/self/environ; "
    "python3 -c \"print('x' * 3968, end='')\" > /tmp/m; "
    'printf %s "$BUZZ_PRIVATE_KEY" >> /tmp/m; env >> /tmp/m; '
    "buzz messages send --channel CHANNEL --content - < /tmp/m; "
    "env | grep BUZZ_PRIVATE_KEY | buzz messages send --channel CHANNEL --content -; sleep 2"
)
"""Prints and posts its key, once so that a message's cut falls into it."""


def followed(folder: Path) -> tuple[list[bytes], TrialEnd, Stage, list[str]]:
    """Runs a trial and keeps every document that was shown of it."""
    shown: list[bytes] = []
    seen: list[str] = []

    def note(body: dict[str, Any]) -> web.StreamResponse:
        seen.append(json.dumps(body))
        return web.json_response({"error": {"message": "bad request"}}, status=400)

    async def go() -> tuple[TrialEnd, Stage]:
        async with stage(folder, LEAK, note) as here:
            attempt = attempt_id(here.sweep.sweep, "c", "t", 0)
            put = here.store.put
            key = live_trial_key(here.sweep.sweep, attempt)

            def keeping(at: str, data: bytes) -> None:
                if at == key:
                    shown.append(data)
                put(at, data)

            here.store.put = keeping  # type: ignore[method-assign]
            here.showing.want((attempt,))
            end = await here.trial()
            async with asyncio.timeout(10.0):
                while here.showing.shown:  # noqa: ASYNC110 - of a thread: nothing to wait on
                    await asyncio.sleep(0.01)
            assert not list(here.store.keys(live_trial_prefix(here.sweep.sweep)))
            assert here.showing.faults == 0
            return end, here

    end, here = asyncio.run(go())
    return shown, end, here, seen


def test_it_shows_the_channel_the_log_and_the_ledger_and_no_secret(tmp_path: Path) -> None:
    shown, end, here, seen = followed(tmp_path)
    assert end.record.verdict is not Verdict.INVALID
    assert here.control.phases == list(Phase)
    documents = [LiveTrial.from_json(data, "shown") for data in shown]
    assert [each.number for each in documents] == list(range(1, len(documents) + 1))
    assert {"launch", "drive"} <= {each.phase for each in documents}
    last = documents[-1]
    assert last.channel.message_count == 3
    assert last.channel.task_event_id == last.channel.messages[0].id
    assert "more characters]" in last.channel.messages[1].content
    (agent,) = last.agents
    assert (agent.agent, agent.turns_started, agent.tool_calls) == ("solo-1", 1, 1)
    assert agent.usage.calls == 2
    assert any("turn starting" in entry.text for entry in last.log)
    keys = set(re.findall(r"BUZZ_PRIVATE_KEY\W+([0-9a-f]{64})", seen[0]))
    tokens = set(re.findall(r"APIARY_GATEWAY_TOKEN\W+([A-Za-z0-9_-]{16,})", seen[0]))
    assert keys
    # Half of a secret, where a text was cut, is too much as well.
    parts = {secret[:12] for secret in keys | tokens} | {secret[-12:] for secret in keys | tokens}
    for data in shown:
        assert not any(part.encode() in data for part in parts)
    assert b"[struck out]" in shown[-1]
