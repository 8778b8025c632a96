from __future__ import annotations

import ctypes
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from workers.agent import supervisor
from workers.agent.supervisor import StartError

pytestmark = pytest.mark.long

PROGRAM = """
import sys
from pathlib import Path
from workers.agent import supervisor
{change}
sys.exit(supervisor.main(Path({logs!r})))
"""
STAND_IN = """
import os, signal, subprocess
def stand_in(variables, environment):
{body}
supervisor.run_agent = stand_in
"""


def start(
    logs: Path, agents: Any, body: str = "", text: str | None = None, mark: str = "", **more: str
) -> subprocess.Popen[str]:
    """The supervisor in a process, its agents replaced by ``body`` where one is given."""
    lines = "\n".join("    " + line for line in body.splitlines())
    change = mark + (STAND_IN.format(body=lines) if body else "")
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": os.getcwd(),
        "TASK_OWN": "kept",
        "APIARY_AGENTS": json.dumps(agents) if text is None else text,
        **more,
    }
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM.format(change=change, logs=str(logs))],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process: subprocess.Popen[str]) -> tuple[int, str]:
    _, errors = process.communicate(timeout=30)
    return process.returncode, errors


def ended(logs: Path, name: str) -> Any:
    return json.loads((logs / f"{name}.exit.json").read_text())


def test_every_agent_has_its_logs_and_its_end(tmp_path: Path) -> None:
    body = (
        "name = variables['APIARY_AGENT_ID']\n"
        "print('I am', name, variables['SECRET'])\n"
        "print(os.read(0, 10), file=sys.stderr)\n"
        "if name == 'b-1': os.kill(os.getpid(), signal.SIGKILL)\n"
        "return {'a-1': 0, 'c-1': 3}[name]"
    )
    agents = [{"APIARY_AGENT_ID": f"{n}-1", "SECRET": f"secret-{n}"} for n in "abc"]
    code, errors = finish(start(tmp_path, agents, body))
    assert (code, errors) == (1, "")
    assert ended(tmp_path, "a-1") == {"exit_code": 0, "signal": None}
    assert ended(tmp_path, "b-1") == {"exit_code": None, "signal": 9}
    assert ended(tmp_path, "c-1") == {"exit_code": 3, "signal": None}
    assert (tmp_path / "a-1.stdout.log").read_text() == "I am a-1 secret-a\n"
    assert (tmp_path / "a-1.stderr.log").read_text() == "b''\n"


def test_an_agent_that_raises_leaves_its_traceback(tmp_path: Path) -> None:
    agents = [{"APIARY_AGENT_ID": "a-1"}]
    code, _ = finish(start(tmp_path, agents, "raise ValueError('oh')"))
    assert code == 1
    assert ended(tmp_path, "a-1") == {"exit_code": 1, "signal": None}
    assert "ValueError: oh" in (tmp_path / "a-1.stderr.log").read_text()


def test_nothing_of_ours_stays_readable(tmp_path: Path) -> None:
    body = (
        "print(open(f'/proc/{os.getppid()}/environ').read().count('secret-a'))\n"
        "print(sorted(environment), sorted(os.environ))\n"
        "print(subprocess.run(['env'], capture_output=True, text=True).stdout)\n"
        "return 0"
    )
    agents = [{"APIARY_AGENT_ID": "a-1", "SECRET": "secret-a"}]
    code, errors = finish(
        start(tmp_path, agents, body, APIARY_OTHER="secret-a", BUZZ_ACP_X="secret-a")
    )
    assert (code, errors) == (0, "")
    log = (tmp_path / "a-1.stdout.log").read_text()
    assert log.splitlines()[0] == "0"
    assert "TASK_OWN" in log
    assert "secret-a" not in log
    for name in ("APIARY_", "BUZZ_ACP", "PYTHONPATH"):
        assert name not in log


def test_no_character_ends_an_agent(tmp_path: Path) -> None:
    body = "print('\\u2014\\ud800')\nreturn 0"
    code, _ = finish(start(tmp_path, [{"APIARY_AGENT_ID": "a-1"}], body, LC_ALL="en_US.ISO-8859-1"))
    assert code == 0
    assert (tmp_path / "a-1.stdout.log").read_text(encoding="utf-8") == "\u2014\\ud800\n"


def test_the_process_is_shut_to_others_of_its_user(tmp_path: Path) -> None:
    body = "import ctypes\nprint(ctypes.CDLL(None).prctl(3, 0, 0, 0, 0))\nreturn 0"
    finish(start(tmp_path, [{"APIARY_AGENT_ID": "a-1"}], body))
    assert (tmp_path / "a-1.stdout.log").read_text() == "0\n"
    assert ctypes.CDLL(None).prctl(3, 0, 0, 0, 0) == 1, "PR_GET_DUMPABLE of an ordinary process"


def test_all_ends_when_the_time_is_over(tmp_path: Path) -> None:
    agents = [{"APIARY_AGENT_ID": "a-1", "APIARY_TIME_LIMIT_S": "0.5"}]
    begun = time.monotonic()
    code, errors = finish(start(tmp_path, agents, "signal.pause()\nreturn 0"))
    assert code == 124
    assert "out of time" in errors
    assert time.monotonic() - begun < 20


def test_without_memory_an_agent_goes_before_its_supervisor(tmp_path: Path) -> None:
    body = "print(open('/proc/self/oom_score_adj').read())\nreturn 0"
    finish(start(tmp_path, [{"APIARY_AGENT_ID": "a-1"}], body))
    own = int(Path("/proc/self/oom_score_adj").read_text())
    assert int((tmp_path / "a-1.stdout.log").read_text()) == min(1000, own + 100)


def test_where_an_agent_was_killed_the_counters_stay_for_a_while(tmp_path: Path) -> None:
    body = "os.kill(os.getpid(), signal.SIGKILL)"
    process = start(tmp_path, [{"APIARY_AGENT_ID": "a-1"}], body)
    deadline = time.monotonic() + 20
    while not (tmp_path / "a-1.exit.json").exists():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    begun = time.monotonic()
    finish(process)
    assert time.monotonic() - begun > supervisor.LINGER_S / 2


def test_no_agent_outlives_its_supervisor(tmp_path: Path) -> None:
    body = "print(os.getpid(), flush=True)\nsignal.pause()\nreturn 0"
    process = start(tmp_path, [{"APIARY_AGENT_ID": "a-1"}], body)
    log = tmp_path / "a-1.stdout.log"
    deadline = time.monotonic() + 20
    while not (log.exists() and log.read_text()):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    process.kill()
    finish(process)
    while Path(f"/proc/{log.read_text().strip()}").exists():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_wrong_settings_end_an_agent_with_2(tmp_path: Path) -> None:
    code, _ = finish(start(tmp_path, [{"APIARY_AGENT_ID": "a-1"}]))
    assert code == 1
    assert ended(tmp_path, "a-1") == {"exit_code": 2, "signal": None}
    assert "BUZZ_RELAY_URL is not set" in (tmp_path / "a-1.stderr.log").read_text()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "not json with secret-a",
        "[]",
        "{}",
        '["secret-a"]',
        '[{"APIARY_AGENT_ID": 5}]',
        '[{"K": "secret-a"}]',
        '[{"APIARY_AGENT_ID": "a"}, {"APIARY_AGENT_ID": "a", "K": "secret-a"}]',
        '[{"APIARY_AGENT_ID": "../a", "K": "secret-a"}]',
    ],
)
def test_what_cannot_be_started_is_refused_without_repeating_it(text: str) -> None:
    with pytest.raises(StartError) as caught:
        supervisor.read_agents(text)
    assert "secret-a" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_the_smallest_time_limit_counts() -> None:
    agents = [{"APIARY_TIME_LIMIT_S": "9"}, {"APIARY_TIME_LIMIT_S": "7.5"}, {}]
    assert supervisor.time_limit(agents) == 7.5
    assert supervisor.time_limit([{}]) is None
    with pytest.raises(StartError):
        supervisor.time_limit([{"APIARY_TIME_LIMIT_S": "soon"}])


def test_the_program_says_what_is_missing(tmp_path: Path) -> None:
    code, errors = finish(start(tmp_path, None, text="secret-a"))
    assert code == 2
    assert "APIARY_AGENTS" in errors
    assert "secret-a" not in errors


ORPHAN = """\
subprocess.Popen(["sh", "-c", "(sleep 1000 & echo $! > {folder}/orphan)"]).wait()
print("ready", flush=True)
subprocess.run(["sleep", "1000"])
"""
"""An agent that left something to itself, and waits."""


def wait_for(path: Path, text: str) -> None:
    ends = time.monotonic() + 30
    while not path.exists() or text not in path.read_text():
        assert time.monotonic() < ends, f"{path} does not hold {text!r}"
        time.sleep(0.01)


def test_one_that_stays_kills_its_agents_when_told_and_is_not_told_to_go(tmp_path: Path) -> None:
    agents = [{"APIARY_AGENT_ID": "a-1"}, {"APIARY_AGENT_ID": "a-2"}]
    process = start(tmp_path, agents, ORPHAN.format(folder=tmp_path), APIARY_STAYS="1")
    try:
        for name in ("a-1", "a-2"):
            wait_for(tmp_path / f"{name}.stdout.log", "ready")
        orphan = int((tmp_path / "orphan").read_text())
        for number in (signal.SIGTERM, signal.SIGINT):
            process.send_signal(number)
        process.send_signal(signal.SIGUSR1)
        for name in ("a-1", "a-2"):
            wait_for(tmp_path / f"{name}.exit.json", "signal")
            assert ended(tmp_path, name) == {"exit_code": None, "signal": 9}
        assert process.poll() is None
        os.kill(orphan, 0)
        os.kill(orphan, signal.SIGKILL)
    finally:
        process.kill()
        finish(process)


def test_one_that_stays_outlives_agents_that_end_and_its_time_is_limited(tmp_path: Path) -> None:
    more = {"APIARY_STAYS": "1", "APIARY_TIME_LIMIT_S": "3"}
    process = start(tmp_path, [{"APIARY_AGENT_ID": "a-1"}], "return 0", **more)
    wait_for(tmp_path / "a-1.exit.json", "exit_code")
    assert process.poll() is None
    assert finish(process)[0] == supervisor.TIME_LIMIT_EXIT_CODE


def test_one_that_was_started_again_runs_no_agent(tmp_path: Path) -> None:
    (tmp_path / "frozen").touch()
    body = "os.system('touch %s/ran')" % tmp_path  # noqa: UP031 - braces are the template's
    mark = f"supervisor.FROZEN_MARK = Path({str(tmp_path / 'frozen')!r})\n"
    agents = [{"APIARY_AGENT_ID": "a-1"}]
    more = {"APIARY_STAYS": "1", "APIARY_TIME_LIMIT_S": "2"}
    process = start(tmp_path / "logs", agents, body, mark=mark, **more)
    assert finish(process)[0] == supervisor.TIME_LIMIT_EXIT_CODE
    assert not (tmp_path / "ran").exists()
    assert not (tmp_path / "logs").exists()
