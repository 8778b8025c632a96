from __future__ import annotations

import json
import os
import threading
import time
from pathlib import Path

import pytest

from workers.agent import shell
from workers.agent.llm import ToolCall
from workers.agent.shell import Shell, describe
from workers.agent.tools import Toolbox

ENVIRONMENT = {"PATH": os.environ["PATH"], "MARK": "here"}


def run(command: str, timeout_s: float = 20.0) -> dict[str, object]:
    told: dict[str, object] = json.loads(describe(Shell(ENVIRONMENT).run(command, "/", timeout_s)))
    return told


def gone(pid: int) -> bool:
    """Whether a process ends within a second; a zombie that nobody reaps counts as ended."""
    for _ in range(100):
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except FileNotFoundError:
            return True
        if state == "Z":
            return True
        time.sleep(0.01)
    return False


def test_output_errors_and_exit_code() -> None:
    told = run("echo out; echo err >&2; exit 3")
    assert told.pop("duration_ms") in range(20_000)
    assert told == {"exit_code": 3, "stdout": "out\n", "stderr": "err\n", "timed_out": False}


def test_only_the_given_environment_and_no_input() -> None:
    assert run("env | grep -v -e ^_= -e ^PWD= -e ^SHLVL= | sort")["stdout"] == (
        f"MARK=here\nPATH={os.environ['PATH']}\n"
    )
    assert run("cat; readlink /proc/self/fd/0")["stdout"] == "/dev/null\n"


def test_what_runs_in_the_background_ends_with_the_command() -> None:
    start = time.monotonic()
    told = run("sleep 30 & echo $!")
    assert time.monotonic() - start < 5
    assert gone(int(str(told["stdout"])))


def test_who_left_the_group_holds_nothing_up() -> None:
    start = time.monotonic()
    told = run("setsid sleep 5 & sleep 0.05; echo done")
    assert told["stdout"] == "done\n"
    assert time.monotonic() - start < 4


def test_a_command_that_takes_too_long_is_killed_with_its_children() -> None:
    told = run("sleep 30 & echo $!; echo begun; sleep 30", timeout_s=0.3)
    assert (told["exit_code"], told["timed_out"]) == (124, True)
    pid, begun = str(told["stdout"]).split()
    assert begun == "begun"
    assert gone(int(pid))


def test_a_signal_reads_like_in_a_shell() -> None:
    assert run("kill -9 $$")["exit_code"] == 137


def test_closed_streams_do_not_end_a_command_early() -> None:
    assert run("exec >&- 2>&-; sleep 0.1; exit 5")["exit_code"] == 5


@pytest.mark.parametrize(
    ("command", "size"),
    [("head -c 200000 /dev/zero | tr '\\0' x", 200_000), ("yes | head -n 2500", 5000)],
)
def test_long_output_is_cut_to_its_end_and_kept_in_a_file(
    command: str, size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    told = run(command)
    assert told["stdout_truncated"] is True
    assert len(str(told["stdout"])) <= shell.TAIL_BYTES
    artifact = Path(str(told["stdout_artifact"]))
    assert artifact.stat().st_size == size
    assert artifact.parent == tmp_path
    assert str(artifact) in str(told["notes"])


def test_a_flood_is_read_and_dropped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(shell, "CAPTURE_BYTES", 1_000_000)
    told = run("head -c 5000000 /dev/zero; echo the very end; echo end >&2")
    assert told["exit_code"] == 0
    assert told["stderr"] == "end\n"
    assert len(str(told["stdout"])) == shell.TAIL_BYTES
    assert str(told["stdout"]).endswith("\0the very end\n")
    dropped = 5_000_013 - 1_000_000 - shell.TAIL_BYTES
    kept = Path(str(told["stdout_artifact"])).read_bytes()
    assert kept.startswith(b"\0" * 1_000_000 + f"\n[{dropped} bytes left out]\n".encode())
    assert kept.endswith(b"\0the very end\n")
    assert f"the whole but {dropped} bytes" in str(told["notes"])


def test_without_a_place_for_the_whole_the_end_is_told_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "missing"))
    told = run("yes | head -n 2500")
    assert told["stdout_truncated"] is True
    assert "stdout_artifact" not in told
    assert len(str(told["stdout"])) == 5000


def refuse_to_start(_: threading.Thread) -> None:
    raise RuntimeError("can't start new thread")


def test_without_threads_a_command_is_ended_and_the_model_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(threading.Thread, "start", refuse_to_start)
    box = toolbox(tmp_path)
    calls = [ToolCall(str(n), "shell", {"command": "sleep 30"}) for n in range(2)]
    start = time.monotonic()
    results = box.run(calls)
    assert time.monotonic() - start < 10
    assert [result.is_error for result in results] == [True, True]
    assert "no thread is left" in results[0].text


def test_a_lone_surrogate_in_a_command_does_no_harm() -> None:
    assert run("echo '\ud800x'")["stdout"] == "?x\n"


def test_bytes_that_are_no_text_do_no_harm() -> None:
    assert run("printf '\\377\\376ok'")["stdout"] == "\ufffd\ufffdok"


def toolbox(workdir: Path) -> Toolbox:
    return Toolbox(Shell(ENVIRONMENT), str(workdir))


def test_calls_run_side_by_side_and_keep_their_order(tmp_path: Path) -> None:
    # Each waits for the file of the next: only side by side can they end.
    commands = [
        f"touch {n}; for i in $(seq 500); do [ -e {(n + 1) % 3} ] && break; sleep 0.01; done; "
        f"echo {n}"
        for n in range(3)
    ]
    calls = [ToolCall(f"c{n}", "shell", {"command": text}) for n, text in enumerate(commands)]
    results = toolbox(tmp_path).run(calls)
    assert [result.id for result in results] == ["c0", "c1", "c2"]
    assert [json.loads(result.text)["stdout"] for result in results] == ["0\n", "1\n", "2\n"]


def test_workdir_is_below_the_working_directory_or_absolute(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    box = toolbox(tmp_path)
    for given, expected in (("sub", tmp_path / "sub"), ("/", Path("/")), ("", tmp_path)):
        result = box.run([ToolCall("c", "shell", {"command": "pwd -P", "workdir": given})])[0]
        assert json.loads(result.text)["stdout"].strip() == str(expected.resolve())


@pytest.mark.parametrize(
    "call",
    [
        ToolCall("c", "python", {"command": "x"}),
        ToolCall("c", "shell", {}),
        ToolCall("c", "shell", {"command": 5}),
        ToolCall("c", "shell", {"command": "a\0b"}),
        ToolCall("c", "shell", {"command": "x", "timeout_ms": 0}),
        ToolCall("c", "shell", {"command": "x", "timeout_ms": "soon"}),
        ToolCall("c", "shell", {"command": "x", "workdir": "/nowhere/at/all"}),
        ToolCall("c", "shell", {"command": "x", "workdir": 5}),
        ToolCall("c", "shell", {"command": "x", "workdir": "\ud800"}),
    ],
)
def test_a_wrong_call_is_told_to_the_model(call: ToolCall, tmp_path: Path) -> None:
    result = toolbox(tmp_path).run([call])[0]
    assert result.is_error
    assert "find out why" in result.text


def test_more_calls_than_are_allowed_are_not_run(tmp_path: Path) -> None:
    calls = [ToolCall(str(n), "shell", {"command": "true"}) for n in range(66)]
    results = toolbox(tmp_path).run(calls)
    assert [result.is_error for result in results] == [False] * 64 + [True] * 2
