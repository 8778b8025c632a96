"""Every phase has a clock: an engine that hangs in a call ends the try by it, named.

Docker, relay, gateway and agent are real; a proxy before the engine keeps back what a test says.
"""

from __future__ import annotations

import asyncio
import gc
import re
import threading
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.docker_proxy import DockerProxy, docker_proxy
from tests.workers.trial.stage import Stage, stage
from tests.workers.trial.test_run import SAY, left_of
from workers.container import reap
from workers.contract.outcome import Cause, Phase, Verdict
from workers.contract.trial import TrialEnd

pytestmark = pytest.mark.docker

CONTAINER = "/containers/[0-9a-f]+"
LIMITS = {"build_s": 6.0, "launch_s": 10.0, "freeze_s": 4.0, "teardown_s": 4.0, "seal_s": 20.0}
SLACK_S = 90.0
"""What a phase may take beyond its clock, to undo what it had begun; and a busy machine."""


class Hung(NamedTuple):
    """A trial on an engine with a fault."""

    end: TrialEnd
    seconds: float
    left: list[str]
    """Containers that are there once the engine is well again and was reaped."""
    untidy: str
    """Why the engine got no more work before that."""


def hung(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    faults: Callable[[DockerProxy], object],
    *replies: str,
    **options: float,
) -> Hung:
    """One good try, so that image and agent files are there; then one with the faults."""

    async def go(proxy: DockerProxy) -> Hung:
        async with stage(tmp_path, SAY, "", *replies, **{**LIMITS, **options}) as here:
            first = await here.trial(0)
            assert first.record.verdict is Verdict.PASS, first.record
            faults(proxy)
            began = time.monotonic()
            end = await here.trial(1)
            seconds = time.monotonic() - began
            return Hung(end, seconds, *await well_again(proxy, here))

    with docker_proxy() as proxy:
        monkeypatch.setenv("DOCKER_HOST", proxy.url)
        done = asyncio.run(go(proxy))
    let_go()
    return done


def let_go() -> None:
    """Waits for the threads of calls that hung, which the end of the proxy has woken.

    What the engine's client package leaves of a connection that broke under it is the garbage
    collector's, with a warning that belongs to no other test.
    """
    ends = time.monotonic() + SLACK_S
    for thread in threading.enumerate():
        if thread.name.startswith("docker-call"):
            thread.join(max(0.0, ends - time.monotonic()))
            assert not thread.is_alive(), thread.name
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


async def well_again(proxy: DockerProxy, here: Stage) -> tuple[list[str], str]:
    """What the reaper leaves, and why the engine was drained before."""
    proxy.heal()
    untidy = here.engine.untidy()
    await reap.reap(here.engine)
    assert here.engine.untidy() == ""
    return await asyncio.to_thread(left_of, here.sweep.sweep), untidy


@pytest.mark.parametrize(
    ("method", "path", "fault", "phase", "cause", "clock"),
    [
        ("GET", "/images/.*/json", "silence", Phase.PREPARE, Cause.IMAGE_BUILD, "build_s of 6 s"),
        ("POST", "/containers/create", "swallow", Phase.LAUNCH, Cause.CONTAINER_START, "launch_s"),
        ("POST", f"{CONTAINER}/start", "silence", Phase.LAUNCH, Cause.CONTAINER_START, "launch_s"),
        ("GET", f"{CONTAINER}/json", "trickle", Phase.LAUNCH, Cause.CONTAINER_START, "launch_s"),
        ("POST", f"{CONTAINER}/kill", "swallow", Phase.FREEZE, Cause.FREEZE_FAILED, "freeze_s"),
    ],
)
def test_a_call_without_an_answer_ends_its_phase_by_its_clock(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    method: str,
    path: str,
    fault: str,
    phase: Phase,
    cause: Cause,
    clock: str,
) -> None:
    if phase is Phase.PREPARE:
        monkeypatch.setattr("workers.container.image._USE_S", 0.0)
    done = hung(tmp_path, monkeypatch, lambda proxy: proxy.fault(method, path, fault), SAY)  # type: ignore[arg-type]
    record = done.end.record
    assert (record.phase, record.cause) == (phase, cause), record.detail
    found = re.fullmatch(rf"clock {clock}.* fired after ([0-9.]+) s", record.detail)
    assert found, record.detail
    assert float(found[1]) == pytest.approx(record.phase_seconds[phase.value], abs=1.0)
    bound = LIMITS.get(clock.split()[0], 0.0)
    assert bound <= record.phase_seconds[phase.value] < bound + SLACK_S
    assert done.left == []


def test_a_teardown_without_an_answer_is_a_leftover_and_no_outcome(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never_remove(proxy: DockerProxy) -> None:
        proxy.fault("DELETE", CONTAINER, "swallow")

    done = hung(tmp_path, monkeypatch, never_remove, SAY)
    told = done.end.record.leftovers
    late = r"container: .*(fired after|not done within 4 s .waited) [0-9.]+ s"
    assert re.match(late, told[0]), told
    assert "clock teardown_s" in told[0]
    assert "could not be removed" in done.untidy
    assert done.left == []


def test_a_verifier_that_never_ends_is_ended_by_its_own_clock(tmp_path: Path) -> None:
    async def go() -> TrialEnd:
        async with stage(tmp_path, SAY, test_sh="sleep 1000\n", verifier_s=3.0) as here:
            return await here.trial()

    record = asyncio.run(go()).record
    assert (record.phase, record.cause) == (Phase.VERIFY, Cause.VERIFIER_TIMEOUT)
    told = r"clock verifier.timeout_sec fired: .* within 3 s \(waited [0-9.]+ s\)"
    assert re.search(told, record.detail), record.detail


def test_an_engine_that_goes_silent_in_mid_trial_holds_up_nothing_for_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def all_but_the_start(proxy: DockerProxy) -> None:
        calls = f"{CONTAINER}(/kill|/json)?|/containers/json"
        proxy.fault(".*", calls, "swallow", skip=1)

    done = hung(tmp_path, monkeypatch, all_but_the_start, "sleep 60", agent_s=5.0)
    record = done.end.record
    assert (record.phase, record.cause) == (Phase.FREEZE, Cause.FREEZE_FAILED)
    assert record.phase_seconds["drive"] < 5.0 + SLACK_S
    assert record.leftovers
    assert done.seconds < 5.0 + 4.0 + 4.0 + SLACK_S
    assert done.left == []
