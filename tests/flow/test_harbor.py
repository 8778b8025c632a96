"""Harbor tasks of every shape through the command line, by an oracle and by nobody."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.flow.sweeps import ROOT, Ran, apiary, left_in_docker
from tests.scheduler.export.test_harbor import judged

pytestmark = [pytest.mark.docker, pytest.mark.ray]

TASKS = ROOT / "tests" / "harbor_tasks"
PHASES = {"prepare", "launch", "drive", "freeze", "collect", "verify", "seal"}
EXPECTED = json.loads((TASKS / "expected.json").read_text())
"""Task to agent to verdict, cause and reward."""
SWEEP = f"""\
name: shapes
tasks: {{path: {TASKS}}}
attempts: 1
agent: oracle
canary: {{nop: 1}}
"""


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ran]:
    home = tmp_path_factory.mktemp("harbor")
    (home / "manifests").symlink_to(ROOT / "manifests")
    (home / "shapes.yaml").write_text(SWEEP)
    ended = apiary(home, "run", str(home / "shapes.yaml"), "--metrics-linger", "0")
    yield ended
    assert left_in_docker(ended.sweep) == {"containers": [], "volumes": [], "networks": []}


def records(ran: Ran, agent: str = "oracle") -> dict[str, dict[str, Any]]:
    """Task to the record of its last try."""
    condition = {"oracle": "oracle", "nop": "canary-nop"}[agent]
    found: dict[str, dict[str, Any]] = {}
    for folder in ran.tries():
        record = json.loads((folder / "try.json").read_bytes())
        name = record["task"].rpartition("/")[2]
        if record["condition"] == condition:
            before = found.get(name, {"epoch": [0, 0]})
            found[name] = max(record, before, key=lambda each: each["epoch"][1])
    return found


def stored(ran: Ran, task: str, name: str) -> bytes:
    """A file of an oracle's try."""
    record = records(ran)[task]
    (folder,) = (each for each in ran.tries() if each.parent.name == record["attempt"]
                 and each.name == record["try"])  # fmt: skip
    return (folder / name).read_bytes()


@pytest.mark.parametrize("agent", ["oracle", "nop"])
def test_every_shape_comes_to_what_is_known_beforehand(ran: Ran, agent: str) -> None:
    assert (ran.errors, ran.events[-1]["state"]) == ("", "settled")
    found = {
        name: [record["verdict"], record["cause"], record["reward"]]
        for name, record in records(ran, agent).items()
    }
    # The folder is the list: a task without an expectation, or the other way round, differs here.
    assert set(found) == {path.parent.name for path in TASKS.glob("*/task.toml")}
    assert found == {name: each[agent] for name, each in EXPECTED.items()}


def test_neither_relay_nor_model_nor_evidence_is_there(ran: Ran) -> None:
    for record in records(ran).values():
        assert set(record["phase_seconds"]) == PHASES
        assert (record["usage"]["calls"], record["digests"]["evidence"]) == (0, None)
        assert not {"evidence.json", "usage.jsonl", "relay-events.jsonl"} & set(record["files"])
        assert record["leftovers"] == []


def test_what_a_solution_leaves_running_is_named_or_dead(ran: Ran) -> None:
    found = records(ran)
    serving, stopped, late = (
        found[name] for name in ("keeps-serving", "stops-serving", "never-done")
    )
    assert (serving["freeze"], serving["graded_live"]) == ("agent", True)
    assert any("http.server" in each for each in serving["survivors"])
    assert (stopped["freeze"], stopped["survivors"]) == ("all", [])
    # What has not ended in its time is killed, whatever the task says.
    assert (late["freeze"], late["graded_live"]) == ("all", False)
    assert "did not end within 1 s" in late["detail"]


def test_a_solutions_exit_code_is_told_and_decides_nothing(ran: Ran) -> None:
    found = records(ran)
    assert found["broken-solution"]["agent_exits"] == {"oracle": 3}
    assert found["broken-solution"]["detail"] == "solution/solve.sh ended with exit code 3"
    assert found["late-failure"]["agent_exits"] == {"oracle": 1}
    assert found["late-failure"]["verdict"] == "pass"
    assert stored(ran, "broken-solution", "logs/agents/oracle.log") == b"about to fail\n"
    assert found["out-of-memory"]["oom_events"] > 0


def test_output_is_kept_as_it_came_and_much_of_it_cut(ran: Ran) -> None:
    binary = stored(ran, "binary-output", "logs/agents/oracle.log")
    assert binary == b"\xff\xfe\0\x01\x1b[31msolution\n"
    assert stored(ran, "binary-output", "logs/verifier/output.log") == b"\xff\xfe\0\x01tests\n"
    long = stored(ran, "long-output", "logs/agents/oracle.log")
    assert long.startswith(b"first\nx") and long.endswith(b"x\nlast\n")
    record = records(ran)["long-output"]
    assert len(long) < 5 * 1024 * 1024
    assert record["log_bytes_dropped"]["logs/agents/oracle.log"] > 25_000_000


def test_rewards_of_all_forms_arrive(ran: Ran) -> None:
    found = records(ran)
    assert found["reward-json"]["dimensions"] == {"lines": 3.0}
    assert found["several-rewards"]["dimensions"] == {"sorted": 1.0, "tidy": 0.5}
    assert json.loads(stored(ran, "many-tests", "reward.json"))["counted"] == 1.0
    cells = {cell["task"]: cell["mean_reward"] for cell in ran.summary["cells"]}
    assert cells["harbor-tests/half-right"] == 0.75


def test_it_becomes_a_job_of_harbors(ran: Ran) -> None:
    done = apiary(ran.home, "export", "harbor", "latest", "jobs/shapes")
    assert (done.code, done.errors) == (0, "")
    job = ran.home / "jobs" / "shapes"
    for name, path in (("job-config", "config.json"), ("job-result", "result.json")):
        judged(name, job / path)
    for name, (verdict, cause, reward) in ((n, each["oracle"]) for n, each in EXPECTED.items()):
        (folder,) = job.glob(f"{name}__*")
        judged("trial-config", folder / "config.json")
        told = judged("trial-result", folder / "result.json")
        rewards = (told["verifier_result"] or {"rewards": {"reward": None}})["rewards"]
        assert rewards["reward"] == reward
        raised = told["exception_info"]
        assert (raised is not None) is (verdict == "invalid" or cause == "agent_timeout")
    (binary,) = job.glob("binary-output__*")
    assert (binary / "agent/oracle.txt").read_bytes() == b"\xff\xfe\0\x01\x1b[31msolution\n"
    assert (binary / "verifier/test-stdout.txt").read_bytes() == b"\xff\xfe\0\x01tests\n"


def test_an_oracle_needs_a_solution(tmp_path: Path) -> None:
    (tmp_path / "manifests").symlink_to(ROOT / "manifests")
    state = ROOT / "tests" / "state_tasks"
    refused = apiary(tmp_path, "run", "--path", str(state), "--agent", "oracle")
    assert refused.code == 2
    assert "plays a task's solution/solve.sh; without one: leave-greeting" in refused.errors
    assert not (tmp_path / ".apiary").exists()
