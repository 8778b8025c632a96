"""Tasks graded by their container's state: whole trials, and agents that leave things behind."""

from __future__ import annotations

import asyncio
import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import pytest
from aiohttp import web

from tests.workers.container import hostile
from tests.workers.container.engines import docker, spec
from tests.workers.container.test_door_helper import folder, helper
from tests.workers.trial.stage import PASSING, Reply, Stage, end_of_turn, stage
from tests.workers.trial.test_run import SAY, left_of
from workers.container.docker import DockerEngine
from workers.container.doors import Doors
from workers.container.interface import Killed, NoDoorError
from workers.contract.outcome import Cause, Phase, Verdict
from workers.contract.trial import TrialEnd

pytestmark = pytest.mark.docker

TASKS = Path(__file__).parents[2] / "state_tasks"
GREET = "printf hello > /app/greeting.txt"
COUNT = "wc -w < /app/text.txt > /app/count.txt"
MISCOUNT = "echo 7 > /app/count.txt"
SERVE = (
    "mkdir -p /app/www && echo served > /app/www/page.txt && "
    "(setsid python3 -m http.server --directory /app/www 8080 </dev/null >/dev/null 2>&1 &); "
    "until python3 -c 'import urllib.request as u; u.urlopen(\"http://localhost:8080\")'; "
    "do sleep 0.1; done 2>/dev/null"
)
"""It has answered once: by then it has left the process group that ends with the command."""
AGENT = "python3 -s -m workers.agent"


class Doorless(Doors):
    """A worker that may open sockets and may not touch control groups."""

    def kill_all(self, pid: int, container: str, timeout_s: float) -> Killed:
        """Refuses."""
        raise NoDoorError("the control groups are read-only here")


class DoorlessEngine(DockerEngine):
    """An engine of such a worker."""

    @classmethod
    async def open(cls, *arguments: Any, **options: Any) -> Self:
        """As ``DockerEngine.open``."""
        engine = await super().open(*arguments, **options)
        engine._doors = Doorless()
        return engine


@dataclass
class Ended:
    """A trial that has ended."""

    end: TrialEnd
    stage: Stage

    def stored(self, name: str) -> Any:
        """A JSON file of the try."""
        return json.loads(self.stage.stored(self.end, name))

    def freeze_ms(self) -> float:
        """How long the freeze took."""
        return self.end.record.phase_seconds["freeze"] * 1000


def task_of(tmp_path: Path, name: str, freeze: str | None = None, agent_s: float = 60.0) -> Path:
    """A task folder of the tests, with another mode of freezing or another clock."""
    folder = tmp_path / name
    folder.mkdir()
    for path in (TASKS / name).rglob("*"):
        if path.is_file():
            target = folder / path.relative_to(TASKS / name)
            target.parent.mkdir(exist_ok=True, parents=True)
            target.write_bytes(path.read_bytes())
    text = (folder / "task.toml").read_text()
    text = text.replace("[agent]\ntimeout_sec = 60.0", f"[agent]\ntimeout_sec = {agent_s}")
    if freeze is not None:
        lines = [line for line in text.splitlines() if not line.startswith("freeze")]
        at = lines.index("[metadata]")
        text = "\n".join([*lines[: at + 1], f'freeze = "{freeze}"', *lines[at + 1 :], ""])
    (folder / "task.toml").write_text(text)
    return folder


def run(tmp_path: Path, source: Path, *replies: Reply, **options: Any) -> Ended:
    """One try from its lease to its end, and the proof that nothing is left of it."""

    async def go() -> Ended:
        async with stage(tmp_path, *replies, source=source, **options) as here:
            return Ended(await here.trial(), here)

    ended = asyncio.run(go())
    assert left_of(ended.stage.sweep.sweep) == []
    return ended


@pytest.mark.parametrize(
    ("task", "command", "mode", "verdict"),
    [
        ("leave-greeting", GREET, "agent", Verdict.PASS),
        ("leave-greeting", "true", "agent", Verdict.FAIL),
        ("count-words", COUNT, "all", Verdict.PASS),
        ("count-words", MISCOUNT, "all", Verdict.FAIL),
    ],
)
def test_the_state_that_an_agent_leaves_is_graded(
    tmp_path: Path, task: str, command: str, mode: str, verdict: Verdict
) -> None:
    ended = run(tmp_path, TASKS / task, command)
    record = ended.end.record
    assert record.verdict is verdict, record
    assert record.cause is (Cause.NONE if verdict is Verdict.PASS else Cause.WRONG)
    assert record.reward == (1.0 if verdict is Verdict.PASS else 0.0)
    assert (record.freeze, record.graded_live, record.survivors) == (mode, False, ())
    assert ended.stage.control.phases == list(Phase)
    assert {"reward.txt", "freeze.json", "evidence.json"} <= set(record.files)
    asked = ended.stored("evidence.json")["messages"][0]["content"]
    assert asked == "@solo-1 " + (TASKS / task / "instruction.md").read_text()


def test_a_service_is_graded_alive_and_named(tmp_path: Path) -> None:
    record = run(tmp_path, TASKS / "keep-serving", SERVE).end.record
    assert record.verdict is Verdict.PASS, record
    assert record.dimensions == {"answered": 1.0}
    assert record.graded_live
    (survivor,) = record.survivors
    assert "http.server" in survivor


def test_a_service_does_not_outlive_all(tmp_path: Path) -> None:
    source = task_of(tmp_path, "keep-serving", "all")
    record = run(tmp_path, source, SERVE).end.record
    assert (record.verdict, record.cause, record.freeze) == (Verdict.FAIL, Cause.WRONG, "all")


@pytest.mark.parametrize("freeze", ["agent", "all", "restart"])
def test_what_an_agent_still_runs_dies_with_it(tmp_path: Path, freeze: str) -> None:
    source = task_of(tmp_path, "count-words", freeze, agent_s=3.0)
    ended = run(tmp_path, source, f"{COUNT}; sleep 1000")
    record = ended.end.record
    # Its deadline passed, and what it had done by then counts.
    assert (record.verdict, record.reward) == (Verdict.PASS, 1.0), record
    assert (record.freeze, record.survivors) == (freeze, ())
    killed = [row["command"] for row in ended.stored("freeze.json")["killed"]]
    if freeze == "all":
        assert AGENT in killed
        assert "sleep 1000" in killed


def test_a_deadline_without_the_reward_is_the_models(tmp_path: Path) -> None:
    source = task_of(tmp_path, "count-words", agent_s=3.0)
    record = run(tmp_path, source, "sleep 1000").end.record
    assert (record.verdict, record.cause) == (Verdict.FAIL, Cause.AGENT_TIMEOUT)


ATTACKS = {
    "double fork": hostile.DOUBLE_FORK,
    "rewriter": hostile.REWRITER,
    "fork bomb": hostile.FORK_BOMB,
    "all three": "; ".join((hostile.DOUBLE_FORK, hostile.REWRITER, hostile.FORK_BOMB)),
}


@pytest.mark.parametrize("freeze", ["all", "restart"])
@pytest.mark.parametrize("attack", ATTACKS)
def test_nothing_that_lives_on_changes_a_verdict(
    tmp_path: Path, freeze: str, attack: str, capsys: pytest.CaptureFixture[str]
) -> None:
    source = task_of(tmp_path, "count-words", freeze)
    ended = run(tmp_path, source, f"{MISCOUNT}; {ATTACKS[attack]}; sleep 1")
    record = ended.end.record
    assert (record.verdict, record.cause, record.reward) == (Verdict.FAIL, Cause.WRONG, 0.0), record
    assert (record.freeze, record.graded_live, record.survivors) == (freeze, False, ())
    freeze_file = ended.stored("freeze.json")
    assert freeze_file["survivors"] == []
    told = f"{freeze}, {attack}: freeze {ended.freeze_ms():.0f} ms"
    if freeze == "all":
        assert len(freeze_file["killed"]) >= 2
        told += f", {len(freeze_file['killed'])} killed"
    with capsys.disabled():
        print(f"\n{told}")  # noqa: T201


@pytest.mark.parametrize("attack", ATTACKS)
def test_nothing_that_lives_on_reaches_a_verdict_by_evidence(
    tmp_path: Path, attack: str, capsys: pytest.CaptureFixture[str]
) -> None:
    failing = PASSING.replace('"reward": 1.0', '"reward": 0.0')

    async def go() -> Ended:
        command = f"{SAY}; {ATTACKS[attack]}; sleep 1"
        async with stage(tmp_path, command, verifier=failing) as here:
            return Ended(await here.trial(), here)

    ended = asyncio.run(go())
    record = ended.end.record
    assert (record.verdict, record.cause, record.reward) == (Verdict.FAIL, Cause.WRONG, 0.0), record
    assert (record.freeze, record.graded_live, record.survivors) == ("evidence", False, ())
    assert left_of(ended.stage.sweep.sweep) == []
    with capsys.disabled():
        print(f"\nevidence, {attack}: freeze {ended.freeze_ms():.0f} ms")  # noqa: T201


@pytest.mark.parametrize("attack", ["double fork", "rewriter"])
def test_under_agent_who_lives_on_is_named(tmp_path: Path, attack: str) -> None:
    source = task_of(tmp_path, "count-words", "agent")
    ended = run(tmp_path, source, f"{MISCOUNT}; {ATTACKS[attack]}; sleep 0.5")
    record = ended.end.record
    if attack == "double fork":
        assert record.verdict is not Verdict.INVALID, record
    else:  # what lives on may be writing the reward just when it is read
        assert record.cause in (Cause.NONE, Cause.WRONG, Cause.REWARD_MALFORMED), record
    assert (record.freeze, record.graded_live) == ("agent", True)
    assert any("trap" in survivor for survivor in record.survivors), record.survivors
    assert not any(AGENT in survivor for survivor in record.survivors)
    assert len(ended.stored("freeze.json")["survivors"]) >= len(record.survivors)


def test_under_agent_a_fork_bomb_is_named_too(tmp_path: Path) -> None:
    source = task_of(tmp_path, "count-words", "agent")
    record = run(tmp_path, source, f"{COUNT}; {hostile.FORK_BOMB}; sleep 1").end.record
    assert record.freeze in ("agent", None)
    if record.verdict is not Verdict.INVALID:
        assert record.graded_live
        assert len(record.survivors) == 50


class Unprivileged:
    """The acts of a worker that may do neither: see ``workers.container.door``."""

    @staticmethod
    def listen(pid: int, container: str, port: int) -> Any:
        """Refuses."""
        raise NoDoorError("no privilege")

    @staticmethod
    def kill_all(pid: int, container: str, timeout_s: float) -> Any:
        """Refuses."""
        raise NoDoorError("no privilege")


def test_a_worker_without_privilege_runs_trials_through_the_helper(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class HelpedEngine(DockerEngine):
        @classmethod
        async def open(cls, *arguments: Any, **options: Any) -> Self:
            return await super().open(*arguments, **options, door=place / "door")

    monkeypatch.setattr("workers.container.doors.door", Unprivileged)
    attack = f"{MISCOUNT}; {hostile.REWRITER}; sleep 0.5"
    with folder() as place, helper(place / "door"):
        ended = run(tmp_path, TASKS / "count-words", attack, engine_class=HelpedEngine)
    record = ended.end.record
    assert (record.verdict, record.freeze, record.survivors) == (Verdict.FAIL, "all", ())
    assert len(ended.stored("freeze.json")["killed"]) >= 2
    assert ended.stored("freeze.json")["because"] == ""


def test_where_there_is_no_door_all_becomes_restart(tmp_path: Path) -> None:
    attack = f"{MISCOUNT}; {hostile.REWRITER}; sleep 0.5"
    ended = run(tmp_path, TASKS / "count-words", attack, engine_class=DoorlessEngine)
    record = ended.end.record
    assert (record.verdict, record.freeze, record.survivors) == (Verdict.FAIL, "restart", ())
    told = ended.stored("freeze.json")
    assert (told["asked"], told["mode"]) == ("all", "restart")
    assert told["because"] == "the control groups are read-only here"


PLANTED = {
    "a reward": "echo 1 > /logs/verifier/reward.txt",
    "both rewards": (
        "echo 1 > /logs/verifier/reward.txt; echo '{\"reward\": 1}' > /logs/verifier/reward.json"
    ),
    "a link": "echo 1 > /app/one; ln -s /app/one /logs/verifier/reward.json",
    "folders": "cd /logs/verifier; mkdir -p reward.json/x reward.txt; chmod 0 .",
    "a pipe": "mkfifo /logs/verifier/reward.json /logs/verifier/test-stdout.txt",
    "its output": "ln -s /app/text.txt /logs/verifier/test-stdout.txt",
    "other logs": "mv /logs /old; mkdir -p /logs/verifier; echo 1 > /logs/verifier/reward.txt",
    "other folders": (
        "mv /logs/verifier /logs/old; mkdir /logs/verifier; rm -rf /logs/verifier; "
        "echo 1 > /logs/verifier/reward.txt"
    ),
    "other tests": (
        "mv /tests /elsewhere; mkdir /tests; echo 'echo 1 > /logs/verifier/reward.txt' > "
        "/tests/test.sh; umount /tests; mount -t tmpfs none /tests"
    ),
    "a mount": "umount -l /logs/verifier /logs; mount --bind /app /logs/verifier",
}


@pytest.mark.parametrize("planted", PLANTED)
def test_nothing_that_was_put_there_before_is_a_reward(tmp_path: Path, planted: str) -> None:
    ended = run(tmp_path, TASKS / "count-words", f"{MISCOUNT}; {PLANTED[planted]}")
    record = ended.end.record
    assert (record.verdict, record.cause, record.reward) == (Verdict.FAIL, Cause.WRONG, 0.0), record


def test_no_test_is_readable_before_the_freeze(tmp_path: Path) -> None:
    seen: list[str] = []

    def note(body: dict[str, Any]) -> web.StreamResponse:
        seen.append(json.dumps(body))
        return web.json_response(end_of_turn())

    look = "ls -laR /tests /logs; find / -xdev -name 'test.sh' 2>/dev/null; touch /tests/x"
    record = run(tmp_path, TASKS / "count-words", f"{COUNT}; {look}", note).end.record
    assert record.verdict is Verdict.PASS
    assert "Read-only file system" in seen[0]
    assert "test.sh\\n" not in seen[0].replace("'test.sh'", "")


@pytest.mark.parametrize(
    ("test_sh", "cause"),
    [
        ("exit 3\n", Cause.VERIFIER_CRASH),
        ("no-such-command\n", Cause.VERIFIER_CRASH),
        ("true\n", Cause.REWARD_MISSING),
        ("echo nan > /logs/verifier/reward.txt\n", Cause.REWARD_MALFORMED),
        ("echo 2 > /logs/verifier/reward.txt\n", Cause.REWARD_MALFORMED),
        ("ln -s /etc/passwd /logs/verifier/reward.txt\n", Cause.REWARD_MALFORMED),
        ("mkfifo /logs/verifier/reward.json\n", Cause.REWARD_MALFORMED),
        ("sleep 60\n", Cause.VERIFIER_TIMEOUT),
        ("head -c 700000000 /dev/zero > /logs/verifier/big; sleep 60\n", Cause.VERIFIER_CRASH),
        ("echo 1 > /logs/verifier/reward.txt; exit 1\n", Cause.NONE),
        ("echo 0.25 > /logs/verifier/reward.txt\n", Cause.WRONG),
    ],
)
def test_what_tests_may_do(tmp_path: Path, test_sh: str, cause: Cause) -> None:
    source = task_of(tmp_path, "count-words")
    (source / "tests" / "test.sh").write_text(test_sh)
    text = (source / "task.toml").read_text()
    (source / "task.toml").write_text(text.replace("timeout_sec = 30.0", "timeout_sec = 8.0"))
    record = run(tmp_path, source, COUNT).end.record
    assert record.cause is cause, record


@pytest.mark.parametrize(
    "ruin",
    ["rm -f /bin/bash /usr/bin/bash", "rm -rf /usr/lib /usr/bin /lib /bin 2>/dev/null"],
    ids=["shell", "system"],
)
def test_a_container_that_an_agent_ruined_is_the_agents_doing(tmp_path: Path, ruin: str) -> None:
    record = run(tmp_path, TASKS / "count-words", f"{COUNT}; {ruin}").end.record
    assert (record.verdict, record.cause, record.reward) == (Verdict.FAIL, Cause.WRONG, 0.0), record


def test_tests_see_no_variable_of_ours_and_those_of_their_task(tmp_path: Path) -> None:
    source = task_of(tmp_path, "keep-serving")
    (source / "tests" / "test.sh").write_text(
        "env; tr '\\0' '\\n' < /proc/self/environ; grep -a . /proc/$PPID/environ\n"
        "echo 1 > /logs/verifier/reward.txt\n"
    )
    ended = run(tmp_path, source, "true")
    assert ended.end.record.verdict is Verdict.PASS
    said = ended.stage.stored(ended.end, "logs/verifier/output.log").decode()
    assert "WANTED=served" in said
    for name in ("APIARY", "BUZZ", "PYTHONPATH", "/opt/apiary", "struck out"):
        assert name not in said, said


def test_an_agent_cannot_end_its_container_from_inside(tmp_path: Path) -> None:
    attack = f"{COUNT}; kill -TERM 1; kill -INT 1; kill -KILL 1; kill -HUP 1; sleep 0.3"
    assert run(tmp_path, TASKS / "count-words", attack).end.record.verdict is Verdict.PASS


def test_a_container_that_is_killed_outside_is_lost(tmp_path: Path) -> None:
    async def go() -> TrialEnd:
        async with stage(tmp_path, COUNT, source=TASKS / "count-words") as here:
            trial = asyncio.ensure_future(here.trial())
            await asyncio.wait_for(here.control.reached[Phase.VERIFY].wait(), 60)
            label = f"label=apiary.sweep={here.sweep.sweep}"
            docker("kill", *docker("ps", "--quiet", "--filter", label).split())
            return await asyncio.wait_for(trial, 60)

    record = asyncio.run(go()).record
    assert (record.cause, record.phase) == (Cause.CONTAINER_LOST, Phase.VERIFY), record


def test_freezing_costs_less_than_a_command(tmp_path: Path) -> None:
    """Prints both; figures of a busy machine are asserted nowhere."""

    async def go() -> tuple[float, TrialEnd]:
        async with stage(tmp_path, COUNT, source=TASKS / "count-words") as here:
            it = await here.engine.start(spec("sleep", "1000"), 60)
            started = time.perf_counter()
            await it.execute(["true"], {}, 60)
            idle = (time.perf_counter() - started) * 1000
            await it.remove(60)
            return idle, await here.trial()

    idle, end = asyncio.run(go())
    frozen = end.record.phase_seconds["freeze"] * 1000
    print(f"freeze {frozen:.1f} ms, an idle exec {idle:.1f} ms: {frozen / idle:.2f}")  # noqa: T201
