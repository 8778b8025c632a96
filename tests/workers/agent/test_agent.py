"""A whole agent as a process: relay, model and commands are real, the model's words scripted."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.workers.agent.worlds import (
    WAIT_S,
    ModelServer,
    World,
    chat_run,
    chat_say,
    open_model,
)
from workers.nostr.event import Event

pytestmark = pytest.mark.long

PROGRAM = (
    "import sys; from pathlib import Path; from workers.agent import supervisor; "
    "sys.exit(supervisor.main(Path(sys.argv[1])))"
)


class Running:
    """An agent's process, and what can be seen of it."""

    def __init__(self, world: World, model: ModelServer, logs: Path, **changes: str) -> None:
        self.world = world
        self.model = model
        self._log = logs / "solo-1.stdout.log"
        variables = {
            "APIARY_AGENT_ID": "solo-1",
            **world.variables(world.agent),
            "BUZZ_ACP_CHANNELS": world.channel,
            "BUZZ_ACP_SUBSCRIBE": "mentions",
            "BUZZ_ACP_RESPOND_TO": "anyone",
            "BUZZ_ACP_NO_MEMORY": "true",
            "BUZZ_AGENT_PROVIDER": "scripted",
            "BUZZ_AGENT_MODEL": "luna",
            "BUZZ_AGENT_MAX_ROUNDS": "0",
            "APIARY_GATEWAY_URL": model.url,
            "APIARY_GATEWAY_TOKEN": "token-secret",
            "APIARY_DIALECT": "chat",
            "APIARY_TIME_LIMIT_S": "60",
            **changes,
        }
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(logs),
            "PYTHONPATH": os.getcwd(),
            "APIARY_AGENTS": json.dumps([variables]),
        }
        self._process = subprocess.Popen(
            [sys.executable, "-s", "-c", PROGRAM, str(logs)], env=environment, cwd=logs
        )

    def log(self) -> str:
        return self._log.read_text() if self._log.exists() else ""

    def wait_log(self, pattern: str, count: int = 1) -> list[str]:
        """What a pattern finds in the log, once it finds enough."""
        deadline = time.monotonic() + WAIT_S
        while time.monotonic() < deadline:
            found = re.findall(pattern, self.log())
            if len(found) >= count:
                return found
            assert self._process.poll() is None, self.log()
            time.sleep(0.01)
        raise AssertionError(f"{pattern!r} is not in the log:\n{self.log()}")

    def ready(self) -> None:
        self.wait_log(f"subscribed to channel {self.world.channel}")

    def mention(self, text: str) -> Event:
        client = self.world.user.client
        return self.world.run(
            client.send_message(self.world.channel, text, mentions=[self.world.agent.pubkey])
        )

    def said(self) -> list[Event]:
        agent = self.world.agent.pubkey
        return [e for e in self.world.relay.timeline() if e.kind == 9 and e.pubkey == agent]

    def end(self) -> None:
        self._process.kill()
        self._process.wait(WAIT_S)


@contextmanager
def running(
    world: World, logs: Path, answer: Callable[[str, Any], Any], **changes: str
) -> Iterator[Running]:
    def respond(path: str, body: Any) -> tuple[int, Any]:
        told = answer(path, body)
        return told if isinstance(told, tuple) else (200, told)

    with open_model(respond) as model:
        agent = Running(world, model, logs, **changes)
        try:
            yield agent
        finally:
            agent.end()


def prompts(body: Any) -> list[str]:
    return [m["content"] for m in body["messages"] if m["role"] == "user"]


def replies(body: Any) -> int:
    return sum(m["role"] == "tool" for m in body["messages"])


def reply_command(prompt: str, text: str) -> str:
    """What a model would run to answer the first event of a prompt."""
    event = re.search(r"Event ID: ([0-9a-f]{64})", prompt)
    channel = re.search(r"Channel: .*\(#([0-9a-f-]{36})\)", prompt)
    author = re.search(r"From: .*\(([0-9a-f]{64})\)", prompt)
    assert event and channel and author
    return (
        f"buzz messages send --channel {channel[1]} --reply-to {event[1]} "
        f"--mention {author[1]} --content - <<'EOF'\n{text}\nEOF"
    )


def say_ok(_path: str, _body: Any) -> Any:
    return chat_say("ok")


def test_a_mention_is_answered_in_its_thread(world: World, tmp_path: Path) -> None:
    def answer(_path: str, body: Any) -> Any:
        if replies(body):
            return chat_say("sent")
        return chat_run(reply_command(prompts(body)[0], "5,328 dollars") + "\nenv")

    persona = tmp_path / "persona.md"
    persona.write_text("Answers are short.")
    with running(world, tmp_path, answer, BUZZ_ACP_SYSTEM_PROMPT_FILE=str(persona)) as agent:
        agent.ready()
        task = agent.mention("@solo-1 what does it cost?")
        agent.wait_log(f"turn complete for channel {world.channel}: end_turn")
        (reply,) = agent.said()
        assert [list(tag) for tag in reply.tags[:-1]] == [
            ["h", world.channel],
            ["e", task.id, "", "reply"],
            ["p", world.user.pubkey],
        ]
        assert reply.content == "5,328 dollars\n"
        delivered = f"turn delivered Buzz events for channel {world.channel}: {task.id}"
        marks = [f"turn starting for channel {world.channel}", delivered, "turn complete"]
        places = [agent.log().index(mark) for mark in marks]
        assert places == sorted(places)
        system = agent.model.requests[0][2]["messages"][0]["content"]
        assert "[Agent Instructions]\nAnswers are short." in system
        assert f"Working directory: {tmp_path}" in system
        assert agent.model.requests[0][1]["authorization"] == "Bearer token-secret"
        shown = json.dumps(agent.model.requests[-1][2])
        assert world.agent.keypair.secret_hex in shown, "production gives the key to its shell"
        assert "token-secret" not in shown
        assert "token-secret" not in agent.log()
        assert world.agent.keypair.secret_hex not in agent.log()


def test_what_comes_during_a_turn_is_added_to_it(world: World, tmp_path: Path) -> None:
    gate = tmp_path / "gate"

    def answer(_path: str, body: Any) -> Any:
        if not replies(body):
            return chat_run(f"touch {gate}; while [ -e {gate} ]; do sleep 0.01; done")
        return chat_say("done")

    with running(world, tmp_path, answer) as agent:
        agent.ready()
        first = agent.mention("@solo-1 ALPHA")
        while not gate.exists():
            time.sleep(0.01)
        second = agent.mention("@solo-1 BETA")
        # The same connection carries both, so a later answer proves that the first has arrived.
        world.run(world.relay.wait_event(lambda event: event.id == second.id, WAIT_S))
        time.sleep(0.1)
        gate.unlink()
        agent.wait_log("turn complete")
        ids = ",".join(sorted([first.id, second.id]))
        assert f"turn delivered Buzz events for channel {world.channel}: {ids}" in agent.log()
        told = prompts(agent.model.requests[-1][2])
        assert "BETA" in told[-1]
        assert "[Context]" not in told[-1]
        assert agent.log().count("turn starting") == 1


def test_the_next_turn_knows_the_one_before(world: World, tmp_path: Path) -> None:
    with running(world, tmp_path, lambda _path, _body: chat_say("noted")) as agent:
        agent.ready()
        agent.mention("@solo-1 the code is 17")
        agent.wait_log("turn complete")
        agent.mention("@solo-1 which code?")
        agent.wait_log("turn complete", 2)
        told = prompts(agent.model.requests[-1][2])
        assert len(told) == 2
        assert "the code is 17" in told[0]


def test_a_mention_from_before_the_start_is_answered(world: World, tmp_path: Path) -> None:
    world.run(
        world.user.client.send_message(
            world.channel, "@solo-1 early", mentions=[world.agent.pubkey]
        )
    )
    with running(world, tmp_path, lambda _path, _body: chat_say("ok")) as agent:
        agent.wait_log("turn complete")
        assert "early" in prompts(agent.model.requests[0][2])[0]


@pytest.mark.parametrize(
    ("answer", "changes", "marker"),
    [
        (
            {"choices": [{"message": {"content": "no"}, "finish_reason": "content_filter"}]},
            {},
            "turn refused for channel ",
        ),
        (
            {"choices": [{"message": {"content": "x"}, "finish_reason": "length"}]},
            {},
            "turn hit max_tokens for channel ",
        ),
        (
            chat_run("true"),
            {"BUZZ_AGENT_MAX_ROUNDS": "2"},
            "turn hit max_turn_requests for channel ",
        ),
        ((404, {"error": "no such model"}), {}, "turn failed for channel "),
    ],
)
def test_how_turns_end(
    world: World, tmp_path: Path, answer: Any, changes: dict[str, str], marker: str
) -> None:
    with running(world, tmp_path, lambda _path, _body: answer, **changes) as agent:
        agent.ready()
        agent.mention("@solo-1 work")
        agent.wait_log(marker + world.channel)
        assert agent.log().count("turn starting") == 1
        agent.mention("@solo-1 again")
        agent.wait_log(marker + world.channel, 2)


def test_the_messages_dialect(world: World, tmp_path: Path) -> None:
    def answer(path: str, body: Any) -> Any:
        assert path == "/v1/messages"
        if len(body["messages"]) > 1:
            return {"content": [{"type": "text", "text": "done"}], "stop_reason": "end_turn"}
        command = reply_command(body["messages"][0]["content"][0]["text"], "hi")
        use = {"type": "tool_use", "id": "t1", "name": "shell", "input": {"command": command}}
        return {"content": [use], "stop_reason": "tool_use"}

    changes = {"APIARY_DIALECT": "messages", "BUZZ_AGENT_PROVIDER": "anthropic"}
    with running(world, tmp_path, answer, **changes) as agent:
        agent.ready()
        agent.mention("@solo-1 hello")
        agent.wait_log("turn complete")
        assert [event.content for event in agent.said()] == ["hi\n"]
        assert agent.model.requests[0][1]["x-api-key"] == "token-secret"


def test_core_memory_is_shown_unless_switched_off(world: World, tmp_path: Path) -> None:
    world.run(world.agent.client.write_memory("core", "My colour is teal."))
    for number, off in enumerate(("false", "true")):
        logs = tmp_path / str(number)
        logs.mkdir()
        with running(world, logs, say_ok, BUZZ_ACP_NO_MEMORY=off) as agent:
            agent.ready()
            agent.mention("@solo-1 hello")
            agent.wait_log("turn complete")
            system = agent.model.requests[0][2]["messages"][0]["content"]
            assert ("My colour is teal." in system) == (off == "false")


def test_without_a_channel_list_all_channels_are_listened_to(world: World, tmp_path: Path) -> None:
    with running(world, tmp_path, say_ok, BUZZ_ACP_CHANNELS="") as agent:
        agent.ready()
        later = world.run(world.user.client.create_channel("later"))
        world.run(world.user.client.add_member(later, world.agent.pubkey))
        agent.wait_log(f"subscribed to channel {later}")


def test_an_agent_that_the_relay_refuses_ends(world: World, tmp_path: Path) -> None:
    with open_model(lambda path, body: (200, say_ok(path, body))) as model:
        agent = Running(world, model, tmp_path, BUZZ_AUTH_TAG="")
        try:
            assert agent._process.wait(WAIT_S) == 1
            assert "not a relay member" in agent.log()
        finally:
            agent.end()
    assert json.loads((tmp_path / "solo-1.exit.json").read_text())["exit_code"] == 1
