from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest

from tests.base_image import base_image
from tests.workers.container.engines import Bench, docker, eventually
from workers.container.disk import short_of_space, writable_layer
from workers.container.interface import DiskFullError


def test_a_full_disk_is_told_and_an_unseen_one_is_not_judged(tmp_path: Path) -> None:
    assert short_of_space(tmp_path, 0) == ""
    assert "fewer than limits.disk_free_mb 1000000000" in short_of_space(tmp_path, 10**9)
    assert short_of_space(tmp_path / "nowhere", 10**9) == ""


def test_a_layer_is_seen_where_the_engine_says_and_the_host_has_it(tmp_path: Path) -> None:
    assert writable_layer({"GraphDriver": {"Data": {"UpperDir": str(tmp_path)}}}) == tmp_path
    assert writable_layer({"GraphDriver": {"Data": {"UpperDir": "/nowhere"}}}) is None
    assert writable_layer({"GraphDriver": {"Data": None}}) is None
    assert writable_layer({}) is None


@pytest.mark.docker
def test_a_build_that_eats_up_the_disk_is_stopped(bench: Bench) -> None:
    context = bench.directory / "context"
    context.mkdir()
    (context / "Dockerfile").write_text(f"FROM {base_image()}\nRUN sleep 6123\n")

    async def scenario() -> float:
        async with bench.engine() as engine:
            build = asyncio.ensure_future(
                engine.ensure_image(
                    context, tag=f"apiary-test:{bench.node}", build_args={}, labels={}, timeout_s=90
                )
            )
            await asyncio.wait({build}, timeout=2.0)
            assert not build.done()
            began = time.monotonic()
            engine._disk_free_mb = 1 << 40
            with pytest.raises(DiskFullError, match=r"MB free, fewer than limits\.disk_free_mb"):
                await build
            return time.monotonic() - began

    assert asyncio.run(scenario()) < 30
    # The engine notices that its client has hung up.
    eventually(lambda: "sleep 6123" not in docker("ps", "--no-trunc", "--format", "{{.Command}}"))
