"""Ends that are the model's doing, and what looks like another's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from aiohttp import web

from tests.classification.cases import case
from tests.classification.trials import SAY, trial
from tests.workers.trial.stage import end_of_turn
from workers.contract.result import TryRecord

EAT = "python3 -c 'b = bytearray(10**9)'"
"""More than the container may have."""

HOSTILE = """\
cat > /tmp/post.py <<'END'
import os, sys, uuid
sys.path.insert(0, "/opt/apiary/lib")
from workers.agent.bridge import Bridge
from workers.agent.identity import Identity
key = os.environ["BUZZ_PRIVATE_KEY"]
me = Identity.from_texts(key, os.environ["BUZZ_AUTH_TAG"])
bridge = Bridge(os.environ["BUZZ_RELAY_URL"].replace("ws", "http", 1), me)
here, own = "CHANNEL", str(uuid.uuid4())
{posts}
END
python3 /tmp/post.py
"""
"""A model that speaks to the relay itself."""


def hostile(posts: str) -> str:
    """A command that posts what no ``buzz`` command would."""
    return HOSTILE.replace("{posts}", posts)


@case("model", "it does what was asked", "pass none none seal never")
async def _right(folder: Path) -> TryRecord:
    return await trial(folder, SAY)


@case("model", "a wrong answer", "fail model wrong seal never")
async def _wrong(folder: Path) -> TryRecord:
    return await trial(folder, SAY.replace("hello", "good bye"))


@case("model", "two messages where one was due", "fail model wrong seal never")
async def _twice(folder: Path) -> TryRecord:
    # Within one second they would be one and the same event.
    return await trial(folder, f"{SAY}; sleep 1.1; {SAY}")


@case("model", "another channel's message with this one's tag", "pass none none seal never")
async def _two_channels(folder: Path) -> TryRecord:
    posts = """\
assert bridge.publish(me.sign(9007, [("h", own), ("name", "own")], "")).accepted
assert bridge.publish(me.sign(9, [("h", own), ("h", here)], "elsewhere")).accepted
"""
    return await trial(folder, f"{hostile(posts)}{SAY}")


@case("model", "its own key as a mention", "fail model wrong seal never")
async def _key(folder: Path) -> TryRecord:
    posts = """\
assert bridge.publish(me.sign(9, [("h", here), ("p", key), ("p", key)], key)).accepted
"""
    return await trial(folder, hostile(posts))


@case("model", "nothing said", "fail model no_reply seal never")
async def _silent(folder: Path) -> TryRecord:
    return await trial(folder)


@case("model", "asleep past its deadline, and healthy", "fail model agent_timeout drive never")
async def _asleep(folder: Path) -> TryRecord:
    return await trial(folder, f"{SAY}; sleep 600", agent_s=4.0)


@case("model", "a refusal", "fail model agent_stopped seal never")
async def _refusal(folder: Path) -> TryRecord:
    def refuse(_: dict[str, Any]) -> web.StreamResponse:
        answer = end_of_turn()
        answer["choices"][0]["finish_reason"] = "content_filter"
        return web.json_response(answer)

    return await trial(folder, refuse)


@case("model", "its limit of calls reached", "fail model agent_stopped seal never")
async def _rounds(folder: Path) -> TryRecord:
    return await trial(folder, "true", "true", "true", budget={"max_calls": 2})


@case("model", "more logged than the task may store", "fail model agent_stopped seal never")
async def _logs(folder: Path) -> TryRecord:
    fill = "head -c 30000000 /dev/zero > /logs/agents/big; sleep 600"
    return await trial(folder, fill, environment={"storage_mb": 16})


@case("model", "the condition's budget spent", "fail model budget_exhausted seal never")
async def _budget(folder: Path) -> TryRecord:
    return await trial(folder, "true", "true", "true", budget={"max_output_tokens": 7})


@case("model", "the agent killed for its container's memory", "fail model agent_oom drive never")
async def _oom(folder: Path) -> TryRecord:
    # The kernel picks the process with the highest score: the agent offers itself.
    return await trial(folder, f"echo 1000 > /proc/$PPID/oom_score_adj; {EAT}")


@case("model", "a child killed for memory, and the agent goes on", "pass none none seal never")
async def _child_oom(folder: Path) -> TryRecord:
    record = await trial(folder, f"{EAT}; {SAY}")
    assert record.oom_events >= 1
    return record


@case("model", "a long silence, and then an answer", "pass none none seal never")
async def _silence(folder: Path) -> TryRecord:
    record = await trial(folder, f"sleep 3; {SAY}", silence_s=1.0)
    assert record.silences
    return record
