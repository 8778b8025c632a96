from __future__ import annotations

import json
from pathlib import Path

import pytest

from scheduler.bench.peer import Harbor
from scheduler.bench.processes import BenchError


def program(folder: Path, name: str, text: str) -> None:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(f"#!/bin/sh\n{text}")
    (folder / name).chmod(0o755)


def harbor(tmp_path: Path, job: str = "") -> Harbor:
    """A stand-in that writes the results it is told to."""
    program(tmp_path / "bin", "docker", "exit 0\n")
    program(tmp_path / "bin", "harbor", f'[ "$1" = --version ] && echo 0.26.0 && exit\n{job}')
    return Harbor("harbor", tmp_path, {"PATH": f"{tmp_path / 'bin'}:/usr/bin:/bin"})


def results(*rewards: float | None) -> str:
    """What a job leaves: trials that begin and end a second after one another."""
    lines = []
    for place, reward in enumerate(rewards):
        told = {
            "started_at": f"2026-01-01T00:00:0{place}Z",
            "finished_at": f"2026-01-01T00:00:0{place + 2}Z",
            "verifier_result": None if reward is None else {"rewards": {"reward": reward}},
        }
        lines.append(f"mkdir -p jobs/job-1/t{place}")
        lines.append(f"echo '{json.dumps(told)}' > jobs/job-1/t{place}/result.json")
    return "\n".join(lines)


def test_without_harbor_it_says_how_to_get_it(tmp_path: Path) -> None:
    with pytest.raises(BenchError, match=r"no program 'nosuch'.*Python 3\.12.*pip install harbor"):
        Harbor("nosuch", tmp_path, {"PATH": "/usr/bin:/bin"})


def test_without_compose_it_says_how_to_get_it(tmp_path: Path) -> None:
    program(tmp_path / "bin", "harbor", "echo 0.26.0\n")
    program(tmp_path / "bin", "docker", "echo 'unknown command: docker compose' >&2; exit 1\n")
    with pytest.raises(
        BenchError, match=r"unknown command: docker compose; .*docker-compose-plugin"
    ):
        Harbor("harbor", tmp_path, {"PATH": f"{tmp_path / 'bin'}:/usr/bin:/bin"})


def test_a_job_is_timed_from_its_first_trial_to_its_last(tmp_path: Path) -> None:
    made = harbor(tmp_path, results(1.0, 1.0))
    assert made.version == "0.26.0"
    ran = made.run(tmp_path / "tasks", 2, 2, "mark-of-a-test")
    assert (ran.trials, ran.trials_s, ran.trial_s, ran.per_s) == (2, 3.0, 2.0, 2 / 3)


@pytest.mark.parametrize("rewards", [(1.0,), (1.0, 0.0), (1.0, None)])
def test_a_job_that_did_not_pass_as_a_whole_has_no_time(
    rewards: tuple[float | None, ...], tmp_path: Path
) -> None:
    made = harbor(tmp_path, results(*rewards) + "\necho why")
    with pytest.raises(BenchError, match="harbor ended with 0 and 1 of 2 passes: why"):
        made.run(tmp_path / "tasks", 2, 2, "mark-of-a-test")
