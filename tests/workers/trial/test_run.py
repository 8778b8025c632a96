"""Whole trials: real container, relay, gateway and agent; a model that does its worst."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
from pathlib import Path

import pytest
from aiohttp import web

from tests.workers.trial.stage import PASSING, Reply, Stage, stage
from workers.contract.outcome import Blame, Cause, Phase, Verdict
from workers.contract.result import TryRecord, result_key
from workers.contract.trial import Commit, TrialEnd

pytestmark = pytest.mark.docker

SAY = "buzz messages send --channel CHANNEL --content 'hello'"


def left_of(sweep: str) -> list[str]:
    """What the engine still holds of a sweep."""
    found = []
    for kind in (("ps", "-a"), ("volume", "ls"), ("network", "ls")):
        command = ["docker", *kind, "-q", "--filter", f"label=apiary.sweep={sweep}"]
        found += subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    return found


def kill_containers_of(sweep: str) -> None:
    """What an operator's hand, or the kernel, might do."""
    listing = ["docker", "ps", "-q", "--filter", f"label=apiary.sweep={sweep}"]
    ids = subprocess.run(listing, capture_output=True, check=True, text=True).stdout.split()
    subprocess.run(["docker", "kill", *ids], capture_output=True, check=True)


def run_trial(tmp_path: Path, *replies: Reply, **options: object) -> tuple[TrialEnd, Stage]:
    """One try from its lease to its end, and the proof that nothing is left of it."""

    async def go() -> tuple[TrialEnd, Stage]:
        async with stage(tmp_path, *replies, **options) as here:  # type: ignore[arg-type]
            return await here.trial(), here

    end, here = asyncio.run(go())
    assert left_of(here.sweep.sweep) == []
    return end, here


def test_a_pass_is_committed_with_all_its_files(tmp_path: Path) -> None:
    end, here = run_trial(tmp_path, SAY)
    record = end.record
    assert (record.verdict, record.cause, end.commit) == (
        Verdict.PASS,
        Cause.NONE,
        Commit.WRITTEN,
    )
    assert here.control.phases == list(Phase)
    assert record.usage.calls == 2
    assert record.usage.cost_usd == pytest.approx(2 * (10 * 1.0 + 5 * 2.0) / 1e6)
    committed = here.store.get(result_key(record.sweep, record.attempt))
    assert TryRecord.from_json(committed, "result.json") == record
    for name in ("evidence.json", "relay-events.jsonl", "reward.json", "usage.jsonl"):
        assert name in record.files
    contents = [m["content"] for m in json.loads(here.stored(end, "evidence.json"))["messages"]]
    assert contents == ["@solo-1 Say something.\n", "hello"]
    assert not list((here.workspace / "trials").iterdir())


def test_no_secret_reaches_the_store_whatever_the_agent_prints(tmp_path: Path) -> None:
    leak = (
        "env; cat /proc/1/environ | tr '\\0' '\\n'; cat /proc/self/environ; "
        'printf %s "$BUZZ_PRIVATE_KEY" | base64; env >&2; '
        "env | cut -c1-4000 | buzz messages send --channel CHANNEL --content -; "
        "cat /proc/1/environ | tr '\\0' '\\n' | cut -c1-9000 | "
        "buzz messages send --channel CHANNEL --content -"
    )
    seen: list[str] = []

    def note(body: dict[str, object]) -> web.StreamResponse:
        seen.append(json.dumps(body))
        return web.json_response({"error": {"message": "bad request"}}, status=400)

    end, here = run_trial(tmp_path, leak, note)
    # The model, and so the agent, saw the key; nothing that is stored may repeat it.
    keys = set(re.findall(r"BUZZ_PRIVATE_KEY\W+([0-9a-f]{64})", seen[0]))
    tokens = set(re.findall(r"APIARY_GATEWAY_TOKEN\W+([A-Za-z0-9_-]{16,})", seen[0]))
    assert keys
    stored = [p for p in here.store_folder.rglob("*") if p.is_file()]
    assert len(stored) > 5
    for path in stored:
        data = path.read_bytes().lower()
        for secret in keys | tokens:
            assert secret.lower().encode() not in data, path.name
    assert b"[struck out]" in here.stored(end, "evidence.json")
    assert end.record.verdict is not Verdict.INVALID


def test_the_deadline_is_a_fail_and_names_its_clock(tmp_path: Path) -> None:
    end, _ = run_trial(tmp_path, f"{SAY}; sleep 60", agent_s=3.0)
    record = end.record
    assert (record.verdict, record.cause) == (Verdict.FAIL, Cause.AGENT_TIMEOUT)
    assert record.reward == 1.0
    assert re.search(r"clock agent_timeout of 3 s fired after 3\.\d s", record.detail)


def test_an_operator_who_stops_gets_an_invalid_try_and_no_rubbish(tmp_path: Path) -> None:
    async def go() -> tuple[TrialEnd, str]:
        async with stage(tmp_path, "sleep 60") as here:
            trial = asyncio.ensure_future(here.trial())
            await asyncio.wait_for(here.control.reached[Phase.DRIVE].wait(), 60)
            here.control.cancelled.set()
            end = await asyncio.wait_for(trial, 30)
            return end, here.sweep.sweep

    end, sweep = asyncio.run(go())
    assert (end.record.blame, end.record.cause) == (Blame.OPERATOR, Cause.CANCELLED)
    assert "buzz/buzz-evidence-error.txt" in end.record.files
    assert left_of(sweep) == []


def test_whatever_an_agent_makes_of_its_log_folder_nothing_stays_on_the_node(
    tmp_path: Path,
) -> None:
    dig = "import os\\nfor _ in range(3000):\\n os.mkdir('d')\\n os.chdir('d')"
    _, here = run_trial(tmp_path, f'cd /logs/agents && printf "{dig}" | python3 -; ls', SAY)
    assert not list((here.workspace / "trials").iterdir())


def test_an_agent_that_fills_the_nodes_disk_is_stopped(tmp_path: Path) -> None:
    fill = "head -c 300000000 /dev/zero > /logs/agents/big; sleep 60"
    end, here = run_trial(tmp_path, fill, verifier=PASSING.replace('"reward": 1.0', '"reward": 0'))
    record = end.record
    assert (record.verdict, record.cause) == (Verdict.FAIL, Cause.AGENT_STOPPED)
    assert "storage_mb is 256" in record.detail
    assert record.phase_seconds["drive"] < 30
    assert not list((here.workspace / "trials").iterdir())


def test_a_late_lease_writes_late_and_does_not_commit(tmp_path: Path) -> None:
    async def go() -> tuple[TrialEnd, Stage]:
        async with stage(tmp_path, SAY) as here:
            here.control.valid = False
            return await here.trial(), here

    end, here = asyncio.run(go())
    assert end.commit is Commit.LATE
    assert here.stored(end, "late.json")
    assert not here.store.exists(result_key(end.record.sweep, end.record.attempt))


def test_the_second_try_of_a_committed_attempt_is_superseded(tmp_path: Path) -> None:
    async def go() -> TrialEnd:
        async with stage(tmp_path, SAY) as here:
            attempt = here.sweep.sweep
            end = await here.trial()
            assert end.commit is Commit.WRITTEN, attempt
            return await here.trial(0)

    end = asyncio.run(go())
    assert end.commit is Commit.SUPERSEDED
