"""A sweep's budget and a provider's key, through the command line, on real nodes."""

from __future__ import annotations

import asyncio
import json
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from tests.flow.sweeps import ROOT, Ran, apiary, watching
from workers.gateway import LedgerLine, usage_of
from workers.model import ScriptedModel
from workers.model.server import Tally

pytestmark = [pytest.mark.docker, pytest.mark.ray]

KEY = "sk-flow-canary-0123456789abcdef"
ATTEMPTS = 6
CALLS = 7


@contextmanager
def served_model() -> Iterator[tuple[str, Tally]]:
    """The scripted endpoint in a thread of its own, as a provider that no sweep serves itself."""
    ready, ending = threading.Event(), threading.Event()
    made: list[tuple[str, Tally]] = []

    async def serve() -> None:
        async with ScriptedModel() as model:
            made.append((model.base_url, model.tally))
            ready.set()
            await asyncio.to_thread(ending.wait)

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    try:
        assert ready.wait(30)
        yield made[0]
    finally:
        ending.set()
        thread.join()


class RaysFiles:
    """Looks through what Ray writes while trials run: sessions, runtime environments, logs."""

    def __init__(self) -> None:
        self.read = 0
        self.found: list[Path] = []

    def __call__(self, event: dict[str, Any], pid: int) -> None:
        if event["event"] != "try":
            return
        for folder in Path(tempfile.gettempdir()).glob(f"apiary-ray-{pid}-*"):
            for path in folder.rglob("*"):
                # A file may go while it is looked for.
                with suppress(OSError):
                    if path.is_file() and not path.is_symlink():
                        self.read += 1
                        self.found += [path] if KEY in _text(path) else []


def records(ran: Ran) -> list[dict[str, Any]]:
    return [json.loads((folder / "try.json").read_bytes()) for folder in ran.tries()]


def test_a_budget_stops_a_sweep_of_real_trials_and_a_higher_one_ends_it(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "mounted-key").write_text(f"{KEY}\n")
    with served_model() as (url, tally), watching() as seen:
        endpoint = {"provider": "openai", "api_key_env": "FLOW_KEY", "base_url": url}
        (home / "endpoints.json").write_text(json.dumps({"scripted-solver": endpoint}))
        variables = {"FLOW_KEY_FILE": str(home / "mounted-key")}

        locked = apiary(
            home,
            *("run", "--path", str(ROOT / "manifests" / "tasks" / "reply-to-thread")),
            *("--manifest", str(ROOT / "manifests" / "conditions" / "scripted-solver.yaml")),
            *("--endpoint-config", "endpoints.json", "-k", str(ATTEMPTS), "--lock-only"),
        )
        assert (locked.code, tally.requests) == (0, 0)

        refused = apiary(home, "resume", "latest", "--budget-calls", str(CALLS))
        assert refused.code == 2
        assert "the environment variable FLOW_KEY must hold its key" in refused.errors

        rays = RaysFiles()
        stopped = apiary(home, "resume", "latest", "-n", "2", variables=variables, on_event=rays)
        assert rays.read > 10
        assert rays.found == []
        assert (stopped.code, stopped.events[-1]["state"]) == (6, "budget")
        assert tally.requests == CALLS
        done = {result["attempt"]: result for result in stopped.results}
        assert 0 < len(done) < ATTEMPTS
        causes = {record["cause"] for record in records(stopped)}
        assert causes <= {"none", "sweep_budget"}

        again = apiary(home, "resume", "latest", variables=variables)
        assert (again.code, tally.requests) == (6, CALLS)

        ended = apiary(home, "resume", "latest", "--budget-usd", "50", "--budget-calls", "500",
                       variables=variables)  # fmt: skip
        assert (ended.code, ended.events[-1]["state"]) == (0, "settled")
        after = {result["attempt"]: result for result in ended.results}
        assert len(after) == ATTEMPTS
        assert {attempt: after[attempt] for attempt in done} == done

        # Nothing is open: no key is needed for it, nor for looking.
        assert apiary(home, "resume", "latest").code == 0

    locks = sorted((home / ".apiary" / "sweeps" / ended.sweep).glob("lock-*.json"))
    budgets = [json.loads(path.read_bytes())["budget"] for path in locks]
    assert [budget["max_calls"] for budget in budgets] == [None, CALLS, 500]
    assert budgets[2]["max_cost_usd"] == 50.0

    lines = [
        LedgerLine.from_json(line, folder.name)
        for folder in ended.tries()
        for line in (folder / "usage.jsonl").read_bytes().splitlines()
    ]
    total = usage_of(lines)
    usages = [record["usage"] for record in records(ended)]
    for name in ("calls", "input_tokens", "cached_input_tokens", "output_tokens"):
        assert getattr(total, name) == sum(usage[name] for usage in usages)
    for name in ("cost_usd", "uncached_cost_usd"):
        assert getattr(total, name) == pytest.approx(sum(usage[name] for usage in usages))
    assert 0 < total.cost_usd < total.uncached_cost_usd
    assert (total.calls, total.unknown_cost_calls) == (tally.requests, 0)
    assert total.input_tokens == tally.input_tokens
    assert total.output_tokens == tally.output_tokens
    assert total.reasoning_tokens == tally.reasoning_tokens
    assert total.counted.calls == total.calls

    # The key is where it was put, and nowhere else: no command line, no file of Ray's or ours.
    assert not [line for line in seen.command_lines if KEY.encode() in line]
    holders = [path for path in home.rglob("*") if path.is_file() and KEY in _text(path)]
    assert holders == [home / "mounted-key"]


def _text(path: Path) -> str:
    return path.read_bytes().decode("latin-1")
