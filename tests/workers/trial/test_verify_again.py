"""A verifier without a word is asked once more, within the try."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.scheduler.builders import task
from workers.container.interface import ContainerSpec, ContainerTimeoutError, ExitState
from workers.contract.outcome import Cause
from workers.trial.files import TrialFolder
from workers.trial.handoff import Unverified, Verified
from workers.trial.secrets import Secrets
from workers.trial.verify import Verification, verify

Act = Callable[[TrialFolder], ExitState]
DONE = ExitState(exit_code=0, oom_killed=False)


class Acting:
    """An engine whose verifiers do one thing after another."""

    def __init__(self, folder: TrialFolder, *acts: Act) -> None:
        self._folder = folder
        self._acts = list(acts)
        self.runs = 0

    async def run_once(self, spec: ContainerSpec, timeout_s: float) -> tuple[ExitState, str]:
        self.runs += 1
        return self._acts.pop(0)(self._folder), ""


def says(text: str) -> Act:
    def act(folder: TrialFolder) -> ExitState:
        (folder.verifier_logs / "reward.json").write_text(text)
        return DONE

    return act


def crashes(folder: TrialFolder) -> ExitState:
    (folder.verifier_logs / "reward.json").write_text('{"reward": 1.0}')
    return ExitState(exit_code=3, oom_killed=False)


def is_silent(_: TrialFolder) -> ExitState:
    return DONE


def hangs(_: TrialFolder) -> ExitState:
    raise ContainerTimeoutError("60 s")


def asked(tmp_path: Path, *acts: Act) -> tuple[Verified | Unverified, int]:
    folder = TrialFolder(tmp_path / "trial")
    folder.create()
    folder.write("evidence.json", b"{}", Secrets())
    engine: Any = Acting(folder, *acts)
    verification = Verification(task(), "image", tmp_path, folder, {}, Secrets())
    return asyncio.run(verify(engine, verification)), engine.runs


@pytest.mark.parametrize("first", [crashes, is_silent, hangs, says("NaN")])
@pytest.mark.parametrize("reward", [0.0, 1.0])
def test_the_second_word_counts_where_there_was_no_first(
    tmp_path: Path, first: Act, reward: float
) -> None:
    verified, runs = asked(tmp_path, first, says(f'{{"reward": {reward}}}'))
    assert (verified, runs) == (Verified(reward=reward, dimensions={}), 2)


def test_a_word_is_not_asked_for_twice(tmp_path: Path) -> None:
    verified, runs = asked(tmp_path, says('{"reward": 0.0}'), says('{"reward": 1.0}'))
    assert (verified, runs) == (Verified(reward=0.0, dimensions={}), 1)


def test_there_is_no_third_time_and_what_the_first_left_is_not_the_seconds_word(
    tmp_path: Path,
) -> None:
    verified, runs = asked(tmp_path, crashes, is_silent, says('{"reward": 1.0}'))
    assert isinstance(verified, Unverified)
    assert (verified.cause, runs) == (Cause.REWARD_MISSING, 2)
