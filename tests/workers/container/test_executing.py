"""Further commands in a running container, its processes, signals, and starting it again."""

from __future__ import annotations

import asyncio
import contextlib
import time

import pytest

from tests.workers.container import hostile
from tests.workers.container.engines import Bench, docker, eventually, spec
from workers.container import cgroup
from workers.container.interface import (
    ContainerError,
    ContainerLostError,
    ContainerTimeoutError,
    ExitState,
)

pytestmark = pytest.mark.docker

S = 60.0
COUNTING = "echo x >> /count; exec sleep 100000"


def test_a_command_ends_with_its_exit_code_and_its_variables(bench: Bench) -> None:
    async def scenario() -> None:
        async with bench.engine() as engine:
            it = await engine.start(spec("sleep", "1000", environment={"SECRET": "s"}), S)
            script = 'test "$WORD" = "a b" && exit 7'
            assert await it.execute(["sh", "-c", script], {"WORD": "a b"}, S) == 7
            taken = (
                'test -z "${SECRET+x}" && ! tr "\\0" "\\n" < /proc/self/environ | grep -q SECRET'
            )
            assert await it.execute(["sh", "-c", taken], {"SECRET": None}, S) == 0
            codes = await asyncio.gather(
                *(it.execute(["sh", "-c", f"exit {code}"], {}, S) for code in range(6))
            )
            assert codes == list(range(6))
            # A command that writes much, to nobody, does not get stuck.
            assert await it.execute(["head", "-c", "9999999", "/dev/zero"], {}, S) == 0
            assert it._watch.executions == {}
            await it.remove(S)

    asyncio.run(scenario())


def test_a_command_may_be_late_missing_or_lose_its_container(bench: Bench) -> None:
    async def scenario() -> None:
        async with bench.engine() as engine:
            it = await engine.start(spec("sleep", "1000"), S)
            started = time.monotonic()
            with pytest.raises(ContainerTimeoutError, match="within 1 s"):
                await it.execute(["sleep", "1000"], {}, 1.0)
            assert time.monotonic() - started < 30
            gone = await asyncio.gather(
                it.execute(["/no/such/program"], {}, S), return_exceptions=True
            )
            assert gone[0] in (126, 127) or isinstance(gone[0], ContainerError)
            run = asyncio.ensure_future(it.execute(["sleep", "1000"], {}, S))
            await asyncio.to_thread(eventually, lambda: sleeps(it.id) == 3)
            await it.kill(S)
            with pytest.raises(ContainerLostError, match="it has ended"):
                await run
            with pytest.raises(ContainerLostError, match="it has ended"):
                await it.execute(["true"], {}, S)
            with pytest.raises(ContainerLostError, match="it has ended"):
                await it.processes(S)
            with pytest.raises(ContainerError, match="is not running"):
                await it.signal("USR1", S)
            await it.remove(S)

    asyncio.run(scenario())


def sleeps(container: str) -> int:
    """How many processes of a container sleep."""
    return docker("top", container, "-eo", "pid,args").count(" sleep ")


def test_an_end_whose_event_is_lost_is_asked_for(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workers.container.running._LOOK_EXECUTION_S", 0.2)

    async def scenario() -> None:
        async with bench.engine() as engine:
            it = await engine.start(spec("sleep", "1000"), S)
            engine._events.forget(it.id)
            assert await it.execute(["sh", "-c", "exit 5"], {}, S) == 5
            await it.remove(S)

    asyncio.run(scenario())


def test_processes_are_the_same_by_control_group_and_by_engine(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        async with bench.engine() as engine:
            it = await engine.start(spec("sh", "-c", "sleep 1001 & exec sleep 1002"), S)
            await asyncio.to_thread(eventually, lambda: sleeps(it.id) == 2)
            seen = await it.processes(S)
            assert sorted(each.command for each in seen) == ["sleep 1001", "sleep 1002"]
            first = next(each for each in seen if each.command == "sleep 1002")
            assert [each.parent for each in seen if each != first] == [first.pid]
            monkeypatch.setattr(cgroup, "group_of", lambda *_: None)
            assert sorted(await it.processes(S)) == sorted(seen)
            await it.remove(S)

    asyncio.run(scenario())


def test_a_signal_reaches_the_first_process(bench: Bench) -> None:
    async def scenario() -> None:
        async with bench.engine() as engine:
            script = "trap 'exit 9' USR1; touch /ready; while :; do sleep 0.05; done"
            it = await engine.start(spec("sh", "-c", script), S)
            while await it.execute(["test", "-e", "/ready"], {}, S):
                pass
            await it.signal("USR1", S)
            assert (await it.ended(S)) is not None
            assert (await it.ended(0)).exit_code == 9
            await it.remove(S)

    asyncio.run(scenario())


def test_a_restart_leaves_files_and_no_process(bench: Bench) -> None:
    async def scenario() -> None:
        async with bench.engine() as engine:
            it = await engine.start(spec("sh", "-c", COUNTING), S)
            with it.listen(3600):
                assert await it.execute(["sh", "-c", hostile.DOUBLE_FORK], {}, S) == 0
                assert len(await it.processes(S)) > 1
                for times in range(1, 4):
                    while await it.execute(
                        ["sh", "-c", f"test $(wc -l < /count) = {times}"], {}, S
                    ):
                        pass
                    assert len(await it.restart(S)) == 1
            assert await it.ended(0) is None
            it.listen(3600).close()
            assert (await it.kill_all(S)).survivors == ()
            assert await it.kill(S) == ExitState(137, oom_killed=False, signalled=True)
            await it.remove(S)

    asyncio.run(scenario())


def test_what_ends_as_soon_as_it_is_started_again_is_lost(bench: Bench) -> None:
    async def scenario() -> None:
        async with bench.engine() as engine:
            once = "test -e /was && exit 3; touch /was; exec sleep 1000"
            it = await engine.start(spec("sh", "-c", once), S)
            while await it.execute(["test", "-e", "/was"], {}, S):
                pass
            with contextlib.suppress(ContainerLostError):  # it may live to be listed
                await it.restart(S)
            ended = await it.ended(S)
            assert ended is not None
            assert ended.exit_code == 3
            await it.remove(S)

    asyncio.run(scenario())


def test_an_end_after_a_restart_is_seen(bench: Bench) -> None:
    async def scenario() -> None:
        async with bench.engine() as engine:
            it = await engine.start(spec("sh", "-c", COUNTING), S)
            await it.restart(S)
            docker("kill", it.id)
            ended = await it.ended(S)
            assert ended is not None
            assert ended.exit_code == 137
            await it.remove(S)

    asyncio.run(scenario())
