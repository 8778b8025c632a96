"""What a freeze may not let pass: a death that is not proved, or something that lives on."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from workers.container.interface import (
    Container,
    ContainerError,
    ContainerLostError,
    ExitState,
    Killed,
    NoDoorError,
    Process,
)
from workers.contract.outcome import Cause
from workers.trial.errors import PhaseError
from workers.trial.files import TrialFolder
from workers.trial.freeze import FREEZE_FILE, FROZEN_MARK, freeze
from workers.trial.handoff import Frozen, Job, Launched, Provisioned
from workers.trial.secrets import Secrets

FIRST, AGENT = Process(10, 1, "first"), Process(11, 10, "agent")
SERVICE = Process(12, 10, "service --key 00ff")


@dataclass
class FakeContainer:
    """A container whose processes a test sets; what fails is a list of exceptions by act."""

    running: list[tuple[Process, ...]] = field(default_factory=lambda: [(FIRST, AGENT)])
    survivors: tuple[Process, ...] = ()
    errors: dict[str, Exception] = field(default_factory=dict)
    state: ExitState | None = None
    acts: list[str] = field(default_factory=list)

    def _act(self, name: str) -> None:
        self.acts.append(name)
        if name in self.errors:
            raise self.errors[name]

    def oom_events(self) -> int:
        return 0

    def memory_limit_reached(self) -> bool | None:
        return False

    async def ended(self, timeout_s: float) -> ExitState | None:
        return self.state

    async def kill(self, timeout_s: float) -> ExitState:
        self._act("kill")
        return ExitState(137, oom_killed=False)

    async def kill_all(self, timeout_s: float) -> Killed:
        self._act("kill_all")
        return Killed((AGENT,), self.survivors)

    async def restart(self, timeout_s: float) -> tuple[Process, ...]:
        self._act("restart")
        return self.running[-1]

    async def signal(self, name: str, timeout_s: float) -> None:
        self._act(f"signal {name}")

    async def processes(self, timeout_s: float) -> tuple[Process, ...]:
        return self.running.pop(0) if len(self.running) > 1 else self.running[0]


def frozen(tmp_path: Path, mode: str, container: FakeContainer, seconds: float = 5.0) -> Frozen:
    folder = TrialFolder(tmp_path / "trial")
    folder.create()
    secrets = Secrets()
    secrets.add_token("00ff")
    job = SimpleNamespace(
        sweep=SimpleNamespace(limits=SimpleNamespace(freeze_s=seconds)),
        cell=SimpleNamespace(task=SimpleNamespace(freeze=mode)),
        folder=folder,
        secrets=secrets,
    )
    launched = Launched(cast(Container, container), FIRST.pid, frozenset({AGENT.pid}))
    provisioned = cast(Provisioned, SimpleNamespace(agents=()))
    return asyncio.run(freeze(cast(Job, job), provisioned, launched))


def told(tmp_path: Path) -> Any:
    return json.loads((tmp_path / "trial" / "out" / FREEZE_FILE).read_text())


def test_evidence_is_the_death_of_the_container(tmp_path: Path) -> None:
    it = FakeContainer()
    end = frozen(tmp_path, "evidence", it)
    assert (end.mode, end.exit_state, it.acts) == ("evidence", ExitState(137, False), ["kill"])
    assert not (tmp_path / "trial" / "out" / FREEZE_FILE).exists()


def test_the_agents_death_is_waited_for_and_others_are_named(tmp_path: Path) -> None:
    it = FakeContainer(running=[(FIRST, AGENT, SERVICE), (FIRST, AGENT, SERVICE), (FIRST, SERVICE)])
    end = frozen(tmp_path, "agent", it)
    assert (end.mode, end.exit_state, end.survivors) == ("agent", None, (SERVICE,))
    assert it.acts == ["signal USR1"]
    assert told(tmp_path)["survivors"] == [
        {"pid": 12, "parent": 10, "command": "service --key [struck out]"}
    ]


def test_an_agent_that_does_not_die_is_a_freeze_that_failed(tmp_path: Path) -> None:
    with pytest.raises(PhaseError, match="clock freeze_s") as caught:
        frozen(tmp_path, "agent", FakeContainer(), 0.05)
    assert caught.value.cause is Cause.FREEZE_FAILED


def test_all_dies(tmp_path: Path) -> None:
    end = frozen(tmp_path, "all", FakeContainer())
    assert (end.mode, end.exit_state, end.survivors) == ("all", None, ())
    assert [row["pid"] for row in told(tmp_path)["killed"]] == [AGENT.pid]


def test_who_cannot_be_killed_is_a_freeze_that_failed(tmp_path: Path) -> None:
    with pytest.raises(PhaseError, match="cannot be killed: 12 service") as caught:
        frozen(tmp_path, "all", FakeContainer(survivors=(SERVICE,)))
    assert caught.value.cause is Cause.FREEZE_FAILED


@pytest.mark.parametrize("mode", ["restart", "all"])
def test_a_restart_is_marked_before_and_proved_after(tmp_path: Path, mode: str) -> None:
    it = FakeContainer(running=[(FIRST,)], errors={"kill_all": NoDoorError("no privilege")})
    end = frozen(tmp_path, mode, it)
    assert (end.mode, end.exit_state, it.acts[-1]) == ("restart", None, "restart")
    assert (tmp_path / "trial" / "prompts" / FROZEN_MARK).exists()
    assert told(tmp_path)["because"] == ("no privilege" if mode == "all" else "")


def test_a_restart_after_which_more_runs_is_a_freeze_that_failed(tmp_path: Path) -> None:
    with pytest.raises(
        PhaseError, match="after a restart there run 10 first, 12 service"
    ) as caught:
        frozen(tmp_path, "restart", FakeContainer(running=[(FIRST, SERVICE)]))
    assert caught.value.cause is Cause.FREEZE_FAILED


@pytest.mark.parametrize(
    ("mode", "act"),
    [("evidence", "kill"), ("agent", "signal USR1"), ("all", "kill_all"), ("restart", "restart")],
)
@pytest.mark.parametrize(
    ("error", "cause"),
    [
        (ContainerLostError("gone"), Cause.CONTAINER_LOST),
        (ContainerError("the engine is silent"), Cause.FREEZE_FAILED),
    ],
)
def test_errors_have_their_causes(
    tmp_path: Path, mode: str, act: str, error: Exception, cause: Cause
) -> None:
    with pytest.raises(PhaseError) as caught:
        frozen(tmp_path, mode, FakeContainer(errors={act: error}))
    assert caught.value.cause is cause


@pytest.mark.parametrize("mode", ["agent", "all", "restart"])
def test_a_container_that_has_ended_is_left_as_it_is(tmp_path: Path, mode: str) -> None:
    it = FakeContainer(state=ExitState(3, oom_killed=False))
    end = frozen(tmp_path, mode, it)
    assert (end.mode, end.exit_state, it.acts) == (None, ExitState(3, False), [])
