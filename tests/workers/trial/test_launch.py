"""What the harness launches an agent with, for a task whose answer is a memory."""

from __future__ import annotations

import asyncio
import json
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from tests.workers.trial.test_provision import job_of
from workers.container.interface import Engine
from workers.contract.endpoint import Endpoint
from workers.gateway import Gateway
from workers.storage import open_store
from workers.trial.facts import Facts
from workers.trial.handoff import Prepared, Tools
from workers.trial.launch import container_spec
from workers.trial.provision import provision

ENDPOINTS = {"test-model": Endpoint(provider="scripted", base_url="http://127.0.0.1:9/v1")}


def launched(tmp_path: Path, name: str) -> tuple[dict[str, str], str, list[dict[str, Any]]]:
    """The container's environment, the trial's channel, and the relay's events."""
    bare = job_of(tmp_path, name)
    job = replace(bare, sweep=bare.sweep.model_copy(update={"endpoints": ENDPOINTS}))
    job.folder.create()

    async def run() -> tuple[dict[str, str], str, list[dict[str, Any]]]:
        async with AsyncExitStack() as stack:
            gateway = await stack.enter_async_context(Gateway(ENDPOINTS, {}))
            tools = Tools(
                engine=cast(Engine, None),
                gateway=gateway,
                store=open_store(tmp_path.as_uri()),
                node="n",
                workspace=tmp_path,
                sockets=tmp_path,
            )
            provisioned = await provision(job, tools, stack, Facts())
            prepared = Prepared(image="i", tests=tmp_path, agent_mounts=())
            spec = container_spec(job, prepared, provisioned, "n")
            events = [event.to_dict() for event in provisioned.relay.timeline()]
            return dict(spec.environment), provisioned.channel_id, events

    return asyncio.run(run())


def test_memory_is_injected_where_a_task_does_not_forbid_it(tmp_path: Path) -> None:
    environment, _, _ = launched(tmp_path, "user-mention")
    (agent,) = json.loads(environment["APIARY_AGENTS"])
    assert agent["BUZZ_ACP_NO_MEMORY"] == "false"


def test_no_memory_is_injected_and_the_agent_has_one_channel(tmp_path: Path) -> None:
    environment, channel, events = launched(tmp_path, "memory-retrieval")
    (agent,) = json.loads(environment["APIARY_AGENTS"])
    assert agent["BUZZ_ACP_NO_MEMORY"] == "true"
    assert agent["BUZZ_ACP_CHANNELS"] == channel
    # The five seeds are there all the same, and nobody but the agent can read them.
    seeds = [event for event in events if event["kind"] == 30174]
    assert len(seeds) == 5
    assert not [
        word for word in ("352,345", "customer") if word in json.dumps([environment, events])
    ]
