"""The production stack in a trial, by a stand-in that takes nothing but what its contract says."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from tests.buzz_stand_in.building import NAMES, build
from tests.workers.trial.stage import (
    CHANNEL_ID,
    PASSING,
    PERSONA,
    Reply,
    Stage,
    end_of_turn,
    shell_call,
    stage,
)
from tests.workers.trial.test_run import SAY, left_of
from tests.workers.trial.test_state import DoorlessEngine, task_of
from workers.container.docker import DockerEngine
from workers.contract.agent_logs import ARCHIVE, unpack
from workers.contract.base import sha256_hex
from workers.contract.buzz import program_key
from workers.contract.condition import Condition
from workers.contract.endpoint import Endpoint
from workers.contract.outcome import Blame, Cause, Phase, Verdict
from workers.contract.result import TryRecord
from workers.contract.trial import TrialEnd
from workers.model.server import ScriptedModel

pytestmark = pytest.mark.docker

MENTION = Path("manifests/tasks/user-mention")
KIT = Path("manifests/verifier_kit")
FAILING = PASSING.replace('"reward": 1.0', '"reward": 0.0')
COUNT = "wc -w < /app/text.txt > /app/count.txt"
LINGERER = "(setsid sleep 1234 </dev/null >/dev/null 2>&1 &); sleep 0.3"


def run(tmp_path: Path, *replies: Reply, programs: Path, **options: Any) -> tuple[TrialEnd, Stage]:
    """One try of agent ``buzz``, and the proof that nothing is left of it."""

    async def go() -> tuple[TrialEnd, Stage]:
        async with stage(tmp_path, *replies, programs=programs, **options) as here:
            return await here.trial(), here

    end, here = asyncio.run(go())
    assert left_of(here.sweep.sweep) == []
    return end, here


def outcome(record: TryRecord) -> tuple[str, str, str]:
    """Verdict, blame and cause."""
    return record.verdict.value, record.blame.value, record.cause.value


def entry(name: str, kind: str, count: int, endpoint: str, **generation: Any) -> dict[str, Any]:
    """A class of agents."""
    return {
        "id": name,
        "kind": kind,
        "role": f"the {name}",
        "count": count,
        "endpoint": endpoint,
        "model_revision": "1",
        "prompt": {"path": "p.md", "sha256": sha256_hex(PERSONA.encode())},
        "generation": generation,
    }


def condition_of(*roster: dict[str, Any]) -> Condition:
    """A condition with free tokens."""
    prices = {
        "input_per_million_usd": 0.0,
        "cached_input_per_million_usd": 0.0,
        "output_per_million_usd": 0.0,
    }
    document = {
        "condition": "stage",
        "roster": list(roster),
        "prices": {each["endpoint"]: prices for each in roster},
        "trial_budget": {"timeout_seconds": 300},
    }
    return Condition.from_json(json.dumps(document), "condition")


def test_a_pass_with_logs_and_equal_token_counts(tmp_path: Path) -> None:
    end, here = run(tmp_path, SAY, programs=build(tmp_path / "bin"))
    record = end.record
    assert outcome(record) == ("pass", "none", "none"), record
    assert record.usage.calls == 2
    assert record.token_differences == ()
    log = here.stored(end, "logs/agents/solo-1.stdout.log").decode()
    assert "subscribed to channel" in log
    told = here.stored(end, "logs/agents/solo-1.stderr.log").decode()
    assert told.count("llm: call completed") == 2
    # What the agent was asked with came from the persona and the team's table.
    system = here.requests[0]["messages"][0]["content"]
    assert "[Base]" in system and PERSONA.strip() in system and "## Your team" in system


def test_the_solver_passes_a_shipped_task(tmp_path: Path) -> None:
    async def go() -> TryRecord:
        async with ScriptedModel(seed=1) as model:
            endpoint = Endpoint(
                provider="scripted", base_url=model.base_url, model="scripted-solver"
            )
            async with stage(
                tmp_path,
                source=MENTION,
                kit_source=KIT,
                endpoint=endpoint,
                programs=build(tmp_path / "bin"),
            ) as here:
                end: TryRecord = (await here.trial()).record
                return end

    record = asyncio.run(go())
    assert outcome(record) == ("pass", "none", "none"), record
    assert record.dimensions["answer_correct"] == 1.0


def test_a_team_with_endpoints_of_its_own_is_done_when_it_says_so(tmp_path: Path) -> None:
    def orchestrate(body: dict[str, Any]) -> web.StreamResponse:
        text = json.dumps(body)
        channel = CHANNEL_ID.search(text)
        assert channel is not None
        keys = re.findall(r"worker-\d \| the worker \| ([0-9a-f]{64})", text)
        last = body["messages"][-1]
        send = f"buzz messages send --channel {channel[0]} --content"
        if last["role"] == "tool":
            return web.json_response(end_of_turn())
        if "You are lead-1" in text and "report" not in text:
            mentions = " ".join(f"--mention {key}" for key in keys)
            return web.json_response(shell_call(f"{send} 'please count' {mentions}"))
        if "You are lead-1" in text:
            words = "DONE: both" if text.count("report of") >= 2 else "waiting for the other"
            return web.json_response(shell_call(f"{send} '{words}'"))
        lead = re.search(r"lead-1 \| the lead \| ([0-9a-f]{64})", text)
        assert lead is not None
        command = f'{send} "report of $BUZZ_NOBODY" --mention {lead[1]}'
        return web.json_response(shell_call(command))

    end, here = run(
        tmp_path,
        *([orchestrate] * 12),
        programs=build(tmp_path / "bin"),
        condition=condition_of(
            entry("worker", "worker", 2, "test-model"),
            entry("lead", "orchestrator", 1, "test-model"),
        ),
    )
    record = end.record
    assert outcome(record) == ("pass", "none", "none"), record
    messages = json.loads(here.stored(end, "evidence.json"))["messages"]
    said = [(each["author"], each["content"]) for each in messages]
    assert ("lead-1", "DONE: both") in said
    assert {author for author, _ in said} == {"user", "lead-1", "worker-1", "worker-2"}
    ledger = [json.loads(line) for line in here.stored(end, "usage.jsonl").splitlines()]
    assert {line["agent"] for line in ledger} == {"lead-1", "worker-1", "worker-2"}
    logs = unpack(here.stored(end, ARCHIVE))
    assert {f"{agent}.stdout.log" for agent in ("lead-1", "worker-1", "worker-2")} <= logs.keys()
    # With the record and the commit.
    assert len(list(here.store.keys("sweeps/"))) == len(record.files) + 2 <= 12


MODES: dict[str, tuple[dict[str, float], dict[str, float], tuple[str, str, str], str]] = {
    "dies": ({"dies_after": 0.5}, {}, ("invalid", "harness", "agent_died"), "exit code 101"),
    "never ready": (
        {"never_ready": 1},
        {"launch_s": 8.0},
        ("invalid", "harness", "readiness_timeout"),
        "did not subscribe; solo-1 said",
    ),
    "cancels": ({"cancels": 1}, {}, ("fail", "model", "no_reply"), ""),
    "notices": (
        {"notices": 1},
        {"agent_s": 5.0},
        ("fail", "model", "agent_timeout"),
        "clock agent_timeout",
    ),
}
"""A stand-in's failure mode, the clock that it needs, the outcome, and a word of its detail."""


@pytest.mark.parametrize("mode", MODES)
def test_failures(tmp_path: Path, mode: str) -> None:
    made, clocks, expected, word = MODES[mode]
    slow = "sleep 30" if mode == "dies" else None
    replies = [slow] if slow else []
    end, here = run(
        tmp_path,
        *replies,
        programs=build(tmp_path / "bin", **made),
        verifier=FAILING,
        **clocks,
    )
    assert outcome(end.record) == expected, end.record
    assert word in end.record.detail
    if mode == "notices":
        messages = json.loads(here.stored(end, "evidence.json"))["messages"]
        assert messages[-1]["content"].startswith("\N{WARNING SIGN}")


def test_a_provider_that_fails_is_not_the_models_fault(tmp_path: Path) -> None:
    def refuse(_: dict[str, Any]) -> web.StreamResponse:
        return web.json_response({"error": {"message": "down"}}, status=503)

    end, _ = run(tmp_path, *([refuse] * 9), programs=build(tmp_path / "bin"), agent_s=5.0)
    assert outcome(end.record) == ("invalid", "provider", "provider_5xx"), end.record


def test_another_count_of_tokens_is_reported_and_changes_no_verdict(tmp_path: Path) -> None:
    end, _ = run(tmp_path, SAY, programs=build(tmp_path / "bin", miscounts=1))
    record = end.record
    assert record.verdict is Verdict.PASS
    (difference,) = record.token_differences
    assert (difference.agent, difference.only_in_log, difference.only_in_ledger) == ("solo-1", 2, 2)
    assert (difference.log.output_tokens, difference.ledger.output_tokens) == (12, 10)
    assert "12 out; the ledger 2, 20 (0), 10" in difference.told()


def test_a_program_that_does_not_start_is_a_launch_that_failed(tmp_path: Path) -> None:
    folder = build(tmp_path / "bin")
    (folder / "buzz-acp").write_text("#!/no/such/interpreter\n")
    record = run(tmp_path, programs=folder)[0].record
    assert (record.blame, record.cause, record.phase) == (
        Blame.HARNESS,
        Cause.AGENT_LAUNCH,
        Phase.LAUNCH,
    )
    assert "solo-1 ended before it was ready" in record.detail
    assert "buzz-acp" in record.detail


def test_other_bytes_than_the_lock_says_are_not_run(tmp_path: Path) -> None:
    async def go() -> TryRecord:
        async with stage(tmp_path, programs=build(tmp_path / "bin")) as here:
            assert here.sweep.buzz is not None
            await asyncio.to_thread(
                here.store.put, program_key(here.sweep.buzz.digests["buzz-agent"]), b"#!/bin/sh\n"
            )
            end: TryRecord = (await here.trial()).record
            return end

    record = asyncio.run(go())
    assert record.cause is Cause.STORE_UNAVAILABLE
    assert "buzz-agent: the store holds other bytes" in record.detail


SHELL_ACP = """\
#!/bin/sh
command -v python3 && exit 9
echo "subscribed to channel $BUZZ_ACP_CHANNELS"
echo "turn starting for channel $BUZZ_ACP_CHANNELS"
echo "turn complete for channel $BUZZ_ACP_CHANNELS: end_turn"
exec sleep 60
"""


def test_an_image_needs_no_python(tmp_path: Path) -> None:
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in NAMES:
        (folder / name).write_text(SHELL_ACP)
        (folder / name).chmod(0o755)
    end, _ = run(
        tmp_path,
        programs=folder,
        dockerfile="ARG BASE_IMAGE=python:3.12-slim-bookworm\nFROM ${BASE_IMAGE}\n"
        "RUN rm -f /usr/bin/python3* /usr/local/bin/python3*\nUSER 1000\nWORKDIR /tmp\n",
        test_sh="echo '{\"reward\": 1.0}' > /logs/verifier/reward.json\n",
    )
    assert outcome(end.record) == ("pass", "none", "none"), end.record


TEAM_ACP = """\
#!/bin/sh
[ "$NOTE" = "one
two 'three' \\$(four)" ] && [ "$PATH" = /nowhere ] || exit 9
PATH=/bin:/usr/bin
printf '\\033[32msubscribed'
sleep 0.1
printf '\\033[0m to channel '
sleep 0.1
printf '%s' "$BUZZ_ACP_CHANNELS"
sleep 0.1
echo
case $BUZZ_ACP_SYSTEM_PROMPT_FILE in
    *worker-2*) sleep 1; exit 7 ;;
    *worker-1*) sleep 1; kill -9 $$ ;;
esac
exec sleep 60
"""
"""Ready by a marker in colours and pieces; its workers then end, one of its own accord."""


def test_a_team_is_over_when_one_of_it_dies(tmp_path: Path) -> None:
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in NAMES:
        (folder / name).write_text(TEAM_ACP)
        (folder / name).chmod(0o755)
    note = {"NOTE": "one\ntwo 'three' $(four)", "PATH": "/nowhere"}
    endpoint = Endpoint(provider="scripted", base_url="http://127.0.0.1:9/v1", env=note)
    end, here = run(
        tmp_path,
        programs=folder,
        endpoint=endpoint,
        condition=condition_of(
            entry("worker", "worker", 2, "test-model"),
            entry("lead", "orchestrator", 1, "test-model"),
        ),
    )
    record = end.record
    assert outcome(record) == ("invalid", "harness", "agent_died"), record
    died = re.search("agent (worker-[12]) ended by itself", record.detail)
    assert died is not None
    exits = {"worker-1": 137, "worker-2": 7}
    assert record.agent_exits[died[1]] == exits[died[1]]
    assert record.agent_exits.items() <= exits.items()
    logs = unpack(here.stored(end, ARCHIVE))
    assert b"subscribed" in logs["lead-1.stdout.log"]
    assert {"lead-1.exit.json", "worker-1.exit.json", "worker-2.exit.json"} & logs.keys()


@pytest.mark.parametrize("freeze", ["agent", "all", "restart", "all without a door"])
def test_every_freeze_ends_the_agents(tmp_path: Path, freeze: str) -> None:
    mode, _, doorless = freeze.partition(" ")
    engine = DoorlessEngine if doorless else DockerEngine
    folder = tmp_path / "tasks"
    folder.mkdir()
    # The deadline finds the agent in the middle of a command.
    last, agent_s = ("; sleep 1000", 6.0) if mode == "agent" else ("", 60.0)
    end, here = run(
        tmp_path,
        f"{COUNT}; {LINGERER}{last}",
        programs=build(tmp_path / "bin"),
        source=task_of(folder, "count-words", mode, agent_s),
        engine_class=engine,
    )
    record = end.record
    assert outcome(record) == ("pass", "none", "none"), record
    assert record.freeze == ("restart" if doorless else mode)
    survivors = [row["command"] for row in json.loads(here.stored(end, "freeze.json"))["survivors"]]
    # What was started to stay lives on under ``agent``; of the agents themselves nothing does.
    assert record.graded_live == (mode == "agent")
    assert all("sleep 1234" in command for command in survivors)
    assert len(survivors) == (mode == "agent")


def test_the_first_process_holds_no_key_and_nothing_that_is_stored_does(tmp_path: Path) -> None:
    seen: list[str] = []

    def note(body: dict[str, Any]) -> web.StreamResponse:
        seen.append(json.dumps(body))
        return web.json_response(end_of_turn())

    look = "cat /proc/1/environ | tr '\\0' '\\n'; echo; echo \"key $BUZZ_PRIVATE_KEY\"; env >&2"
    end, here = run(tmp_path, f"{look}; {SAY}", note, programs=build(tmp_path / "bin"))
    assert outcome(end.record) == ("pass", "none", "none"), end.record
    first, _, rest = seen[0].rpartition("key ")
    assert "PATH=" in first
    assert "BUZZ_" not in first.partition("PATH=")[2]
    (key,) = re.findall(r"^[0-9a-f]{64}", rest)
    stored = [path for path in here.store_folder.rglob("*") if path.is_file()]
    assert len(stored) > 5
    assert not [path for path in stored if key.encode() in path.read_bytes()]
