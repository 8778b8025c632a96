"""Faults of a sweep with a Ray of its own, which is how most are run."""

from __future__ import annotations

import pytest

from scheduler.bench.world import World
from tests.base_image import base_image
from tests.faults.checking import Record, check
from tests.faults.engine import private_engine
from tests.faults.sweeps import sweep
from workers.container.api import DockerApi

pytestmark = [pytest.mark.docker, pytest.mark.ray, pytest.mark.alone]

SLOTS = 4


@pytest.mark.parametrize("group", [False, True], ids=["the command", "its process group"])
def test_the_command_is_killed(parts: World, record_property: Record, group: bool) -> None:
    with sweep(parts, f"command-killed-{group}".lower(), cluster=False, slots=SLOTS) as here:
        here.wait_for(committed=2, running=2)
        here.last.kill(group=group)
        here.resume()
        here.settle()
        check(
            here, f"SIGKILL of {'its process group' if group else 'the command'}", record_property
        )


def test_rays_control_service_is_killed(parts: World, record_property: Record) -> None:
    with sweep(parts, "gcs-killed", cluster=False, slots=SLOTS) as here:
        here.wait_for(committed=2, running=2)
        parts.kill_server("gcs_server")
        assert here.end() == 5
        assert "Ray's control service (GCS) on this machine" in here.last.end["reason"]
        here.resume()
        here.settle()
        check(here, "SIGKILL of a local Ray's GCS", record_property)


def test_two_commands_resume_it_at_once(parts: World, record_property: Record) -> None:
    with sweep(parts, "twice-locally", cluster=False, slots=SLOTS) as here:
        here.wait_for(committed=1, running=2)
        here.last.kill()
        one, two = here.resume(), here.resume()
        here.until("both end", lambda: one.code is not None and two.code is not None)
        assert sorted((one.code or 0, two.code or 0)) in ([0, 0], [0, 5]), (one.end, two.end)
        check(here, "resume + resume, a Ray each", record_property)


@pytest.mark.parametrize("live_restore", [False, True], ids=["no live-restore", "live-restore"])
def test_the_engine_is_killed(
    parts: World,
    record_property: Record,
    monkeypatch: pytest.MonkeyPatch,
    live_restore: bool,
) -> None:
    name = f"engine-killed-{live_restore}".lower()
    with private_engine(base_image(), live_restore=live_restore) as engine:
        monkeypatch.setenv("DOCKER_HOST", engine.host)
        monkeypatch.setattr(parts, "api", DockerApi())
        variables = {"DOCKER_HOST": engine.host}
        with sweep(parts, name, cluster=False, slots=SLOTS, variables=variables) as here:
            here.wait_for(committed=1, running=1)
            engine.kill()
            here.outlast(3.0)
            engine.up()
            if here.end() == 5:
                here.resume()
            here.settle()
            how = "with" if live_restore else "without"
            check(here, f"SIGKILL of the engine, {how} live-restore", record_property)
        parts.api.close()
