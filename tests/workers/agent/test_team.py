"""Two agents in one container: the supervisor, a delegation, a callback, the team's end."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.workers.agent.test_agent import PROGRAM, prompts, replies, reply_command
from tests.workers.agent.worlds import WAIT_S, Party, World, chat_run, chat_say, open_model


def variables(world: World, party: Party, name: str, url: str) -> dict[str, str]:
    return {
        "APIARY_AGENT_ID": name,
        **world.variables(party),
        "BUZZ_ACP_CHANNELS": world.channel,
        "BUZZ_ACP_NO_MEMORY": "true",
        "BUZZ_AGENT_PROVIDER": "scripted",
        "BUZZ_AGENT_MODEL": name,
        "APIARY_GATEWAY_URL": url,
        "APIARY_GATEWAY_TOKEN": f"token-{name}",
        "APIARY_TIME_LIMIT_S": "60",
    }


def test_a_team_delegates_reports_back_and_is_done(world: World, tmp_path: Path) -> None:
    worker = world.party("worker-1")
    world.join(worker)

    def orchestrate(body: Any) -> Any:
        told = prompts(body)
        if replies(body) == 0:
            return chat_run(
                f"buzz messages send --channel {world.channel} --content '@worker-1 what is 6*7?'"
            )
        if "42" in told[-1] and replies(body) == 1:
            return chat_run(reply_command(told[0], "DONE: it is 42"))
        return chat_say("waiting or done")

    def work(body: Any) -> Any:
        if replies(body) == 0:
            return chat_run(reply_command(prompts(body)[0], "42"))
        return chat_say("reported")

    def answer(_path: str, body: Any) -> tuple[int, Any]:
        return 200, {"solo-1": orchestrate, "worker-1": work}[body["model"]](body)

    with open_model(answer) as model:
        agents = [
            variables(world, world.agent, "solo-1", model.url),
            variables(world, worker, "worker-1", model.url),
        ]
        environment = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": os.getcwd(),
            "APIARY_AGENTS": json.dumps(agents),
        }
        process = subprocess.Popen(
            [sys.executable, "-s", "-c", PROGRAM, str(tmp_path)], env=environment, cwd=tmp_path
        )
        try:
            for party in (world.agent, worker):
                assert world.run(world.relay.wait_subscribed(party.pubkey, world.channel, WAIT_S))
            world.run(
                world.user.client.send_message(
                    world.channel, "@solo-1 ask your team", mentions=[world.agent.pubkey]
                )
            )
            done = world.run(
                world.relay.wait_event(lambda event: event.content.startswith("DONE:"), WAIT_S)
            )
            assert done is not None
            assert ("p", world.user.pubkey) in done.tags
            tokens = {request[1]["authorization"] for request in model.requests}
            assert tokens == {"Bearer token-solo-1", "Bearer token-worker-1"}
        finally:
            process.kill()
            process.wait(WAIT_S)
