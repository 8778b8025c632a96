"""Whole trials without a model: a task's own solution, or nobody."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.base_image import base_image
from tests.workers.container.engines import docker
from tests.workers.trial.stage import Stage, stage
from tests.workers.trial.test_run import left_of
from workers.contract.outcome import Blame, Cause, Phase, Verdict
from workers.contract.spec import TimeoutMultipliers
from workers.contract.trial import Commit, TrialEnd

pytestmark = pytest.mark.docker

TASKS = Path(__file__).parents[2] / "harbor_tasks"
TOML = """\
schema_version = "1.3"
[agent]
timeout_sec = {agent_s}
[verifier]
timeout_sec = 60.0
[environment]
memory_mb = 256
storage_mb = {storage_mb}
network_mode = "no-network"
{more}
"""
REWARDED = "#!/bin/bash\n[ -e /app/done ] && echo 1 > /logs/verifier/reward.txt\n"
UNSEEN = """\
#!/bin/bash
for place in /solution /tests/../solution; do [ -e $place ] && exit 1; done
mount | grep -q solution && exit 1
echo 1 > /logs/verifier/reward.txt
"""


@dataclass
class Ended:
    """A trial that has ended."""

    end: TrialEnd
    stage: Stage

    def stored(self, name: str) -> bytes:
        """A file of the try."""
        return self.stage.stored(self.end, name)


def task(
    root: Path,
    solve: str | None,
    test: str = REWARDED,
    *,
    agent_s: float = 60.0,
    storage_mb: int = 256,
    more: str = "",
    dockerfile: bool = True,
) -> Path:
    """A Harbor task of the test's own."""
    folder = root / "own"
    for name in ("environment", "tests", "solution"):
        (folder / name).mkdir(parents=True)
    text = TOML.format(agent_s=agent_s, storage_mb=storage_mb, more=more)
    (folder / "task.toml").write_text(text)
    (folder / "instruction.md").write_text("Do it.\n")
    if dockerfile:
        (folder / "environment" / "Dockerfile").write_text(
            "ARG BASE_IMAGE=python:3.12-slim-bookworm\nFROM ${BASE_IMAGE}\nRUN mkdir /app\n"
        )
    (folder / "tests" / "test.sh").write_text(test)
    if solve is not None:
        (folder / "solution" / "solve.sh").write_text(solve)
    return folder


def run(tmp_path: Path, source: Path, agent: str = "oracle", **options: object) -> Ended:
    """One try from its lease to its end, and the proof that nothing is left of it."""

    async def go() -> Ended:
        async with stage(tmp_path, source=source, agent=agent, **options) as here:  # type: ignore[arg-type]
            return Ended(await here.trial(), here)

    ended = asyncio.run(go())
    assert left_of(ended.stage.sweep.sweep) == []
    assert ended.stage.requests == []
    return ended


def test_a_solution_is_played_and_nothing_else_is_opened(tmp_path: Path) -> None:
    solve = "#!/bin/bash\nset -e\necho working\n! touch /solution/more 2>/dev/null\n: > /app/done\n"
    ended = run(tmp_path, task(tmp_path, solve))
    record = ended.end.record
    assert (record.verdict, record.cause, ended.end.commit) == (
        Verdict.PASS, Cause.NONE, Commit.WRITTEN
    )  # fmt: skip
    assert ended.stage.control.phases == [each for each in Phase if each is not Phase.PROVISION]
    assert set(record.files) == {
        "freeze.json", "logs/agents/oracle.log", "reward.txt"
    }  # fmt: skip
    assert ended.stored("logs/agents/oracle.log") == b"working\n"
    assert json.loads(ended.stored("freeze.json"))["survivors"] == []
    assert not (ended.stage.workspace / "agent").exists()


def test_nobody_and_a_model_see_no_solution(tmp_path: Path) -> None:
    source = task(tmp_path, "#!/bin/bash\ntrue\n", UNSEEN)
    assert run(tmp_path / "a", source, "nop").end.record.verdict is Verdict.PASS
    look = "ls / /tests /logs /opt/apiary; find / -name solve.sh -not -path '/proc/*'"

    async def go() -> TrialEnd:
        async with stage(tmp_path / "b", f"{look} > /tmp/seen; ! grep solv /tmp/seen || kill 1",
                         source=source) as here:  # fmt: skip
            return await here.trial()

    (tmp_path / "b").mkdir()
    record = asyncio.run(go()).record
    assert record.verdict is Verdict.PASS, record


@pytest.mark.parametrize(
    ("solve", "cause", "told"),
    [
        ("#!/no/such/program\n", Cause.WRONG, "ended with exit code 127"),
        ("#!/bin/bash\nkill -9 $$\n", Cause.WRONG, "ended with exit code 137"),
        ("#!/bin/bash\nmkdir /logs/agents/oracle.log 2>/dev/null; exit 4\n", Cause.WRONG, "code 4"),
        ("#!/bin/bash\nrm -f /logs/agents/oracle.log; mkfifo /logs/agents/oracle.log; exit 5\n",
         Cause.WRONG, "code 5"),
        ("#!/bin/bash\nchmod 0 /logs/agents /logs/verifier; exit 6\n", Cause.WRONG, "code 6"),
        ("#!/bin/bash\nln -sf /etc/shadow /logs/verifier/reward.txt; rm -rf /solution/*\n",
         Cause.WRONG, ""),
    ],
)  # fmt: skip
def test_a_solution_that_fails_or_does_odd_things_is_a_fail(
    tmp_path: Path, solve: str, cause: Cause, told: str
) -> None:
    test = "#!/bin/bash\necho 0 > /logs/verifier/reward.txt\n"
    record = run(tmp_path, task(tmp_path, solve, test)).end.record
    assert (record.verdict, record.blame, record.cause) == (Verdict.FAIL, Blame.MODEL, cause)
    assert told in record.detail
    assert record.leftovers == ()


def test_a_container_that_its_solution_ends_is_lost(tmp_path: Path) -> None:
    # The first process has no handler for it, and none can be sent from inside but by its parent.
    solve = "#!/bin/bash\nkill -KILL -1; sleep 2\n"
    record = run(tmp_path, task(tmp_path, solve), agent="oracle").end.record
    # PID 1 is spared by the kernel: everything else died, and the tests still run.
    assert record.cause in (Cause.REWARD_MISSING, Cause.VERIFIER_CRASH), record


def test_one_that_fills_the_disk_is_stopped(tmp_path: Path) -> None:
    solve = "#!/bin/bash\nhead -c 60000000 /dev/urandom > /logs/agents/more\nsleep 1000\n"
    test = "#!/bin/bash\necho 0 > /logs/verifier/reward.txt\n"
    record = run(tmp_path, task(tmp_path, solve, test, storage_mb=20)).end.record
    assert (record.cause, record.freeze) == (Cause.AGENT_STOPPED, "all")
    assert "storage_mb is 20" in record.detail


def test_the_operator_can_end_it_at_once(tmp_path: Path) -> None:
    async def go() -> TrialEnd:
        source = task(tmp_path, "#!/bin/bash\nsleep 1000\n")
        async with stage(tmp_path, source=source, agent="oracle") as here:
            running = asyncio.ensure_future(here.trial())
            async with asyncio.timeout(120):
                await here.control.reached[Phase.DRIVE].wait()
            here.control.cancelled.set()
            async with asyncio.timeout(120):
                return await running

    record = asyncio.run(go()).record
    assert (record.verdict, record.cause) == (Verdict.INVALID, Cause.CANCELLED)


def test_a_container_that_somebody_removes_is_the_harness(tmp_path: Path) -> None:
    async def go() -> TrialEnd:
        source = task(tmp_path, "#!/bin/bash\nsleep 1000\n")
        async with stage(tmp_path, source=source, agent="oracle") as here:
            running = asyncio.ensure_future(here.trial())
            async with asyncio.timeout(120):
                await here.control.reached[Phase.DRIVE].wait()
            label = f"label=apiary.sweep={here.sweep.sweep}"
            (name,) = docker("ps", "--quiet", "--filter", label).split()
            await asyncio.to_thread(docker, "rm", "--force", name)
            async with asyncio.timeout(120):
                return await running

    record = asyncio.run(go()).record
    assert (record.verdict, record.cause) == (Verdict.INVALID, Cause.CONTAINER_LOST)


def test_an_image_of_the_tasks_own_is_taken_by_its_reference(tmp_path: Path) -> None:
    more = f'docker_image = "{base_image()}"'
    solve = "#!/bin/bash\nmkdir -p /app\n: > /app/done\n"
    ended = run(tmp_path, task(tmp_path, solve, more=more, dockerfile=False))
    record = ended.end.record
    assert record.verdict is Verdict.PASS, record
    known = json.loads(docker("image", "inspect", base_image()))[0]
    assert record.digests.image == known["Id"]
    assert record.digests.pulled == next(iter(known["RepoDigests"]), None)


def test_an_image_that_cannot_be_had_is_told_with_the_engines_words(tmp_path: Path) -> None:
    more = 'docker_image = "127.0.0.1:1/nobody/there:1"'
    record = run(tmp_path, task(tmp_path, "true\n", more=more, dockerfile=False)).end.record
    assert (record.verdict, record.cause) == (Verdict.INVALID, Cause.IMAGE_BUILD)
    assert "docker pull ended with 1" in record.detail


def test_a_sweep_may_give_more_time_and_ask_for_less(tmp_path: Path) -> None:
    source = task(
        tmp_path,
        "#!/bin/bash\nsleep 3\nmkdir -p /app\n: > /app/done\n",
        "#!/bin/bash\n[ -e /app/done ] && echo 0.5 > /logs/verifier/reward.txt\n",
        agent_s=0.5,
    )
    made = TimeoutMultipliers(agent=100.0)
    record = run(
        tmp_path, source, spec={"timeout_multipliers": made, "pass_threshold": 0.5}
    ).end.record
    assert (record.verdict, record.reward) == (Verdict.PASS, 0.5)
    assert (record.pass_threshold, record.timeout_multipliers) == (0.5, made)


@pytest.mark.parametrize(
    ("name", "command"),
    [
        ("variables", 'printf %s "$PLACE" > /app/place.txt; [ -z "$ONLY_SOLUTION$WANTED" ]'),
        ("other-folder", "touch here"),
    ],
)
def test_a_models_agent_gets_the_same_surroundings(tmp_path: Path, name: str, command: str) -> None:
    async def go() -> TrialEnd:
        async with stage(tmp_path, command, source=TASKS / name) as here:
            return await here.trial()

    record = asyncio.run(go()).record
    assert record.verdict is Verdict.PASS, record
