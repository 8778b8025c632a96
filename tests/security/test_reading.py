"""What containers leave for the node and its user to read, made to harm the reader.

A docstring that begins with an id is a row of ``docs/security.md``.
"""

from __future__ import annotations

import io
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.console import Console

from scheduler.cli import run_cli
from scheduler.cli.exits import Exit
from scheduler.cli.regrade import show_regrade
from scheduler.cli.tasks.checking import show_report
from scheduler.dataset.regrade_format import NotRegraded, Regrade, Regraded
from scheduler.dataset.report import DatasetReport, Mark, TaskReport
from scheduler.report.score import score
from scheduler.report.tables import closing_tables
from tests.scheduler.builders import task
from tests.scheduler.report.builders import cell, record, results
from tests.workers.trial.test_verify_again import asked, says
from workers.agent.supervisor import write_exit
from workers.container.agent_bundle import cache_tag
from workers.container.interface import ContainerError, ExitState
from workers.contract.outcome import Cause, Verdict
from workers.contract.result import TryRecord
from workers.trial.files import TrialFolder, read_guarded
from workers.trial.handoff import Unverified, Verified
from workers.trial.secrets import Secrets
from workers.trial.verify import Verification, read_reward
from workers.trial.verify_state import lay_out

HOSTILE = "\x1b]0;taken\x07\x1b[2J[/nonsense]\u202eevil\ud800"
SHOWN = r"\x1b]0;taken\x07\x1b[2J[/nonsense]\u202eevil\ud800"


def regrade() -> Regrade:
    """One that would change, and one that was left out."""
    moved = Regraded(
        **{"try": "1-1"},
        task="a/b",
        condition="c",
        attempt="d",
        old_digest="e",
        new_digest="e",
        old_verdict=Verdict.PASS,
        new_verdict=Verdict.FAIL,
        old_reward=1.0,
        new_reward=0.0,
        moved={HOSTILE: (1.0, 0.0)},
        fault="",
        changed=True,
    )
    left = NotRegraded(**{"try": "1-1"}, task="a/b", condition="c", attempt="d", reason=HOSTILE)
    return Regrade(sweep="s", at="t", tasks=(), regraded=(moved,), left_out=(left,))


def run_tables(console: Console) -> None:
    lost = cell("f f", layer="regression", dimensions={HOSTILE: 0.0})
    console.print(closing_tables(score(results(lost))))


def test_names_and_words_of_tests_do_not_act_on_a_terminal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """T2 | tests whose dimensions, output or errors hold escape sequences, for the tables of run,
    report and regrade and the lines of check | shown as what they are, one escape for each"""
    stream = io.StringIO()
    console = Console(file=stream, width=400)
    run_tables(console)
    show_regrade(regrade(), console)
    show_report(DatasetReport([TaskReport("t", {"image": Mark("broken", (HOSTILE,))})]))
    text = stream.getvalue() + capsys.readouterr().out
    assert text.count(SHOWN) == 4
    assert not {"\x1b", "\x07", "\u202e"} & set(text)


def test_errors_do_not_act_on_a_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """T3 | a build whose last lines, which its error quotes, hold escape sequences
    | errors are shown in the same way"""

    def fail(**_: object) -> None:
        raise ContainerError(HOSTILE)

    monkeypatch.setattr("scheduler.cli.apiary.main", fail)
    assert run_cli(["doctor"]) == Exit.INFRASTRUCTURE
    assert capsys.readouterr().err == f"✗ {SHOWN}\n"


REWARDS = [
    b"",
    b"\xff",
    b"[" * 60_000,
    b'{"reward": 1, "\\ud800": 1}',
    b'{"reward": 1, "\\u001b[2J\\u0000": 0}',
    b'{"reward": 1e999}',
    b'{"reward": ' + b"9" * 5000 + b"}",
    b'{"reward": 1, "reward": 2}',
    b'{"reward": true}',
    b'{"reward": 1, "x": {"y": 1}}',
]


@pytest.mark.parametrize("data", REWARDS, ids=range(len(REWARDS)))
def test_any_reward_is_one_or_the_tasks_fault(data: bytes) -> None:
    """T4 | a `reward.json` of any bytes: deep, huge, no text, names that are none
    | it is a reward, whose record can be written and read again, or the task's own fault"""
    word = read_reward(data)
    if isinstance(word, Unverified):
        assert word.cause is Cause.REWARD_MALFORMED
        word.detail.encode()
        return
    written = record(Cause.NONE, "a" * 32, 1, reward=word.reward, dimensions=word.dimensions)
    again = TryRecord.from_json(written.to_json(), "try.json")
    assert (again.reward, len(again.dimensions)) == (written.reward, len(written.dimensions))


def a_folder(folder: TrialFolder) -> ExitState:
    """What tests may leave where their reward belongs."""
    for name in ("reward.json", "details.json"):
        (folder.verifier_logs / name / "in").mkdir(parents=True)
    os.mkfifo(folder.verifier_logs / "pipe")
    (folder.verifier_logs / "link").symlink_to("/")
    return ExitState(exit_code=0, oom_killed=False)


def test_what_tests_left_does_not_stop_their_second_run(tmp_path: Path) -> None:
    """T5 | tests that leave folders, pipes or links in the place of their reward
    | what an earlier run left is removed, no link followed, before they run again"""
    verified, runs = asked(tmp_path, a_folder, says('{"reward": 1}'))
    assert (verified, runs) == (Verified(reward=1.0, dimensions={}), 2)
    assert Path("/").is_dir()


NAMES = (b"reward.json", b"a\nb", b"\x1b[2J", b"\xff\xfe", b"-rf", b"..x", b"reward.txt")


@pytest.mark.parametrize("kind", ["file", "folder", "pipe", "link", "sparse"])
def test_names_of_any_bytes_are_taken_out_of_the_rewards_place(tmp_path: Path, kind: str) -> None:
    """A13 | names with line breaks, escape sequences or no text, on files, folders, pipes, links
    or a terabyte of nothing, where the reward belongs | moved away unread before the tests run"""
    folder = TrialFolder(tmp_path / "trial")
    folder.create()
    make: dict[str, Callable[[bytes], object]] = {
        "file": lambda path: open(path, "wb").close(),
        "folder": os.mkdir,
        "pipe": os.mkfifo,
        "link": lambda path: os.symlink("/etc/passwd", path),
        "sparse": lambda path: os.truncate(os.open(path, os.O_CREAT | os.O_WRONLY), 1 << 40),
    }
    for name in NAMES:
        make[kind](os.fsencode(folder.verifier_logs) + b"/" + name)
    tests = tmp_path / "tests"
    tests.mkdir()
    lay_out(Verification(task(), "image", tests, folder, {}, Secrets()))
    assert os.listdir(folder.verifier_logs) == []


@pytest.mark.parametrize("planted", ["folder", "pipe", "link", "file"])
@pytest.mark.parametrize("name", ["solo-1.exit.partial", "solo-1.exit.json"])
def test_the_first_process_outlives_what_is_planted_for_it(
    tmp_path: Path, planted: str, name: str
) -> None:
    """A14 | an agent that plants folders, pipes or links where the container's first process
    writes, to end it and with it the state that is graded | it writes a file of its own making,
    or none, and lives on"""
    path = tmp_path / name
    target = tmp_path / "elsewhere"
    target.write_text("kept")
    plant: dict[str, Callable[[], object]] = {
        "folder": lambda: (path / "in").mkdir(parents=True),
        "pipe": lambda: os.mkfifo(path),
        "link": lambda: path.symlink_to(target),
        "file": lambda: path.write_text("stale"),
    }
    plant[planted]()
    write_exit(tmp_path, "solo-1", 9)
    assert target.read_text() == "kept"
    if planted != "folder":
        told = json.loads(read_guarded(tmp_path / "solo-1.exit.json", 1000))
        assert told == {"exit_code": None, "signal": 9}


@pytest.mark.parametrize("output", ["[" * 9000, '{"cache_tag": "../../x"}', "\x1b[2J", ""])
def test_words_of_a_hostile_python_are_refused(output: str) -> None:
    """I1 | an image's Python that answers with nonsense when the agent is compiled in it
    | one short word of letters is taken, anything else refuses the image"""
    with pytest.raises(ContainerError, match="compiling the agent's files"):
        cache_tag(output)
