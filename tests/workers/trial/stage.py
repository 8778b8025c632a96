"""A node's tools for one real trial, with a model that says what the test wants.

Docker, relay, gateway and the agent are the real ones; the model's endpoint is a small server
that answers every request with the next of the test's replies.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import tempfile
import textwrap
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from aiohttp import web

from scheduler.manifest import load_task
from scheduler.manifest.programs import read_programs
from tests.base_image import base_image
from workers.container.agent_bundle import AgentBundle
from workers.container.docker import DockerEngine
from workers.contract.base import sha256_hex
from workers.contract.buzz import program_key
from workers.contract.condition import Condition
from workers.contract.endpoint import Endpoint
from workers.contract.outcome import Phase
from workers.contract.spec import CellSpec, Epoch, Lease, Limits, SweepSpec, attempt_id, cell_id
from workers.contract.task import Fixture, Task, TaskConfig
from workers.contract.task_folder import archive_key, digest_of, pack
from workers.contract.trial import TrialEnd
from workers.gateway import Gateway
from workers.nostr.keys import Keypair
from workers.showing import Showing
from workers.storage import open_store
from workers.storage.interface import Store
from workers.trial.handoff import Tools
from workers.trial.run import make_trial_function

CHANNEL_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
PERSONA = "Answer directly.\n"
Reply = Callable[[dict[str, Any]], web.StreamResponse] | str
"""A shell command to run, with CHANNEL for the channel's id, or a whole response to a request."""

BUNDLES = Path(".apiary/test-node").absolute()
"""Shared by the tests of a checkout: preparing an agent's files takes a container and seconds."""

DOCKERFILE = "ARG BASE_IMAGE=python:3.12-slim-bookworm\nFROM ${BASE_IMAGE}\nWORKDIR /app\n"

PASSING = textwrap.dedent(
    """\
    import json, pathlib
    pathlib.Path("/logs/verifier/reward.json").write_text(json.dumps({"reward": 1.0, "seen": 1.0}))
    pathlib.Path("/logs/verifier/details.json").write_text("{}")
    """
)


@dataclass
class StageControl:
    """The node's side of a trial, in the hands of a test."""

    cancelled: asyncio.Event = field(default_factory=asyncio.Event)
    valid: bool = True
    phases: list[Phase] = field(default_factory=list)
    reached: dict[Phase, asyncio.Event] = field(
        default_factory=lambda: {phase: asyncio.Event() for phase in Phase}
    )

    def lease_valid(self) -> bool:
        """What the test says."""
        return self.valid

    def entered(self, phase: Phase) -> None:
        """Notes the phase."""
        self.phases.append(phase)
        self.reached[phase].set()


@dataclass
class Stage:
    """Everything for trials of one task."""

    run: Callable[..., Any]
    cell: CellSpec
    sweep: SweepSpec
    store: Store
    store_folder: Path
    workspace: Path
    sockets: Path
    engine: DockerEngine
    control: StageControl
    requests: list[dict[str, Any]]
    showing: Showing
    """Where its trials can be followed."""

    async def trial(self, index: int = 0) -> TrialEnd:
        """Runs one try to its end."""
        lease = Lease(
            attempt=attempt_id(self.sweep.sweep, "c", "t", index),
            index=index,
            cell=self.cell.cell,
            epoch=Epoch(1, index + 1),
            term_s=60.0,
        )
        end: TrialEnd = await self.run(self.cell, lease, self.control)
        return end

    def stored(self, end: TrialEnd, name: str) -> bytes:
        """A file of a try, from the store."""
        record = end.record
        prefix = f"sweeps/{record.sweep}/tries/{record.attempt[:2]}/{record.attempt}/{record.try_}"
        return self.store.get(f"{prefix}/{name}")


def shell_call(command: str) -> dict[str, Any]:
    """A chat completion that calls the shell tool."""
    call = {
        "id": "call-1",
        "type": "function",
        "function": {"name": "shell", "arguments": json.dumps({"command": command})},
    }
    return _completion({"role": "assistant", "content": None, "tool_calls": [call]}, "tool_calls")


def end_of_turn() -> dict[str, Any]:
    """A chat completion that ends the turn."""
    return _completion({"role": "assistant", "content": "done"}, "stop")


def _completion(message: dict[str, Any], finish: str) -> dict[str, Any]:
    return {
        "id": "x",
        "object": "chat.completion",
        "created": 1,
        "model": "test-model",
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
        "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15},
    }


def write_task(
    folder: Path, verifier: str, test_sh: str | None = None, dockerfile: str = DOCKERFILE
) -> None:
    """A small Buzz-native task of the test's own."""
    (folder / "environment").mkdir(parents=True)
    (folder / "tests").mkdir()
    (folder / "environment" / "Dockerfile").write_text(dockerfile)
    (folder / "tests" / "test.sh").write_text(test_sh or "python3 -B /tests/verify.py\n")
    (folder / "tests" / "verify.py").write_text(verifier)
    (folder / "instruction.md").write_text("Say something.\n")


def make_task(
    folder: Path,
    kit: Path,
    agent_s: float,
    verifier_s: float,
    fixture: Fixture | None = None,
    environment: dict[str, int] | None = None,
) -> Task:
    """The task of a folder."""
    config = {
        "schema_version": "1.3",
        "task": {"name": "stage/small"},
        "metadata": {
            "evaluation_layer": "regression",
            "difficulty": "easy",
            "category": "collaboration",
        },
        "agent": {"timeout_sec": agent_s},
        "verifier": {"timeout_sec": verifier_s},
        "environment": {"memory_mb": 256, "storage_mb": 256, **(environment or {})},
    }
    return Task(
        digest=digest_of(folder, kit),
        config=TaskConfig.from_json(json.dumps(config), "task.toml"),
        instruction=(folder / "instruction.md").read_text(),
        fixture=fixture or Fixture(),
    )


def make_condition(budget: dict[str, float] | None = None) -> Condition:
    """A solo condition on the test's endpoint."""
    document = {
        "condition": "stage",
        "roster": [
            {
                "id": "solo",
                "kind": "orchestrator",
                "role": "solo",
                "count": 1,
                "endpoint": "test-model",
                "model_revision": "1",
                "prompt": {"path": "p.md", "sha256": sha256_hex(PERSONA.encode())},
                "generation": {"max_output_tokens": 100, "context_window_tokens": 10000},
                "budget": budget or {},
            }
        ],
        "prices": {
            "test-model": {
                "input_per_million_usd": 1.0,
                "cached_input_per_million_usd": 0.1,
                "output_per_million_usd": 2.0,
            }
        },
        "trial_budget": {"timeout_seconds": 300},
    }
    return Condition.from_json(json.dumps(document), "condition")


@asynccontextmanager
async def _model(replies: list[Reply], requests: list[dict[str, Any]]) -> AsyncIterator[str]:
    left = list(replies)

    async def answer(request: web.Request) -> web.StreamResponse:
        body = await request.json()
        requests.append(body)
        reply = left.pop(0) if left else None
        if callable(reply):
            return reply(body)
        channel = CHANNEL_ID.search(json.dumps(body))
        command = reply.replace("CHANNEL", channel[0]) if reply and channel else reply
        return web.json_response(shell_call(command) if command else end_of_turn())

    app = web.Application(client_max_size=64 * 1024 * 1024)
    app.router.add_post("/v1/chat/completions", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    try:
        yield f"http://{host}:{port}/v1"
    finally:
        await runner.cleanup()


@asynccontextmanager
async def stage(
    tmp_path: Path,
    *replies: Reply,
    verifier: str = PASSING,
    test_sh: str | None = None,
    agent_s: float = 60.0,
    verifier_s: float = 30.0,
    store: Store | None = None,
    dockerfile: str = DOCKERFILE,
    fixture: Fixture | None = None,
    environment: dict[str, int] | None = None,
    budget: dict[str, float] | None = None,
    endpoint: Endpoint | None = None,
    engine_class: type[DockerEngine] = DockerEngine,
    workspace: Path | None = None,
    source: Path | None = None,
    agent: str = "reference",
    programs: Path | None = None,
    kit_source: Path | None = None,
    condition: Condition | None = None,
    keys: Mapping[str, str] | None = None,
    spec: Mapping[str, Any] | None = None,
    owner: Keypair | None = None,
    **limits: float,
) -> AsyncIterator[Stage]:
    """Opens the tools, and checks at the end that no container of ours is left."""
    folder, kit = tmp_path / "small", tmp_path / "kit"
    if source is None:
        write_task(folder, verifier, test_sh, dockerfile)
    else:
        shutil.copytree(source, folder)
    if kit_source is None:
        kit.mkdir()
        (kit / "__init__.py").write_text("")
    else:
        shutil.copytree(kit_source, kit)
    store = store or open_store(f"file://{tmp_path}/store")
    task = (
        make_task(folder, kit, agent_s, verifier_s, fixture, environment)
        if source is None
        else load_task(folder, kit)
    )
    await asyncio.to_thread(store.put, archive_key(task.digest), pack(folder, kit))
    condition = condition or make_condition(budget)
    buzz = None
    if programs is not None:
        agent = "buzz"
        read = read_programs(programs)
        buzz = read.stack
        for digest, path in read.files.items():
            await asyncio.to_thread(store.put, program_key(digest), path.read_bytes())
    workspace = workspace or tmp_path / "work"
    requests: list[dict[str, Any]] = []
    node = f"stage-{os.getpid()}"
    with tempfile.TemporaryDirectory(prefix="apiary-") as sockets:
        async with _model(list(replies), requests) as base_url:
            endpoints = {"test-model": endpoint or Endpoint(provider="scripted", base_url=base_url)}
            sweep = SweepSpec(
                sweep=f"stage-{os.urandom(4).hex()}",
                store=store.url,
                agent=agent,
                base_image=base_image(),
                seed=1,
                limits=Limits.model_validate(limits),
                endpoints=endpoints,
                buzz=buzz,
                **{"network": "sealed", "relay": "embedded", **(spec or {})},
            )
            engine = await engine_class.open(node)
            try:
                async with (
                    Gateway(endpoints, keys or {}) as gateway,
                    Showing(store, sweep.sweep, pause_s=0.05) as showing,
                ):
                    bundle = AgentBundle(engine, BUNDLES, {})
                    tools = Tools(
                        engine, gateway, store, node, workspace, Path(sockets), showing=showing
                    )
                    tools = replace(tools, owner=owner)
                    yield Stage(
                        run=make_trial_function(sweep, tools, bundle),
                        cell=CellSpec(
                            cell=cell_id(condition.digest, task.digest),
                            task=task,
                            condition=condition,
                            prompts={sha256_hex(PERSONA.encode()): PERSONA},
                        ),
                        sweep=sweep,
                        store=store,
                        store_folder=tmp_path / "store",
                        workspace=workspace,
                        sockets=Path(sockets),
                        engine=engine,
                        control=StageControl(),
                        requests=requests,
                        showing=showing,
                    )
            finally:
                await engine.close()
