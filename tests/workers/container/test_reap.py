from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.base_image import base_image
from tests.workers.container.engines import Bench, docker, spec
from workers.container import ownership, reap
from workers.container.reap import why_removable

LABELS = st.dictionaries(
    st.sampled_from([ownership.EXPIRES, ownership.OWNER, ownership.NODE, ownership.SWEEP, "x"]),
    st.sampled_from(["", "99", "100", "101", "-1", "9" * 30, "٣", "1e1", "here", "there", "gone"]),
)


@given(LABELS)
def test_only_an_expired_label_or_a_dead_owner_here_is_a_proof(labels: dict[str, str]) -> None:
    proved = why_removable(labels, "here", 100.0, lambda owner: owner == "gone") is not None
    expired = labels.get(ownership.EXPIRES) == "99"
    orphan = labels.get(ownership.NODE) == "here" and labels.get(ownership.OWNER) == "gone"
    assert proved == (expired or orphan)


def test_the_reason_is_told() -> None:
    assert why_removable({ownership.EXPIRES: "40"}, "here", 100.0) == "expired 60 s ago"
    labels = {ownership.NODE: "here", ownership.OWNER: "7:1:2"}
    assert why_removable(labels, "here", 0, lambda _: True) == "its owner, process 7, is gone"


def container(bench: Bench, **labels: str) -> str:
    """A running container made by somebody else, with labels of their choice."""
    words = [f"--label=apiary.{name}={value}" for name, value in labels.items()]
    return docker(
        *("run", "--detach", "--network=none", f"--label=test={bench.node}", *words),
        *(base_image(), "sleep", "1000"),
    )


@pytest.mark.docker
def test_the_reaper_removes_only_what_is_proved_to_be_ours(bench: Bench) -> None:
    dead = f"{2**22 + 1}:1:{ownership.pid_namespace()}"
    live = ownership.this_process()
    removable = {
        container(bench, expires="1"),
        container(bench, expires="1", node="elsewhere", owner=live),
        container(bench, node=bench.node, owner=dead),
        container(bench, node=bench.node, owner=dead, expires="9999999999"),
    }
    kept = {
        container(bench),
        container(bench, sweep="s", node=bench.node),
        container(bench, expires="soon", node=bench.node),
        container(bench, expires="9999999999", node=bench.node),
        container(bench, node="elsewhere", owner=dead),
        container(bench, node=bench.node, owner=live),
        container(bench, node=bench.node, owner=f"{2**22 + 1}:1:0"),
    }
    volume = f"{bench.node}-volume"
    docker("volume", "create", "--label", "apiary.expires=1", volume)
    docker("network", "create", "--label", "apiary.expires=1", f"{bench.node}-network")

    async def scenario() -> None:
        engine = await bench.open()
        try:
            done = await reap.reap(engine)
        finally:
            await engine.close()
        ids = {it.id for it in done.removed}
        assert ids >= removable | {volume}
        assert not ids & kept
        assert {it.kind for it in done.removed} >= {"containers", "volumes", "networks"}
        assert done.failed == ()

    try:
        asyncio.run(scenario())
        left = docker("ps", "-aq", "--no-trunc", "--filter", f"label=test={bench.node}").split()
        assert set(left) == kept
        assert bench.node not in docker("network", "ls")
    finally:
        docker("rm", "--force", *kept)


@pytest.mark.docker
def test_what_cannot_be_removed_is_told_and_stops_nothing(bench: Bench) -> None:
    volume = f"{bench.node}-volume"
    docker("volume", "create", "--label", "apiary.sweep=" + bench.node, volume)
    user = docker(
        *("create", "--label", f"test={bench.node}", "--volume", f"{volume}:/x"),
        *(base_image(), "true"),
    )

    async def scenario() -> None:
        async with bench.engine() as engine:
            await engine.start(spec("sleep", "1000", labels={"apiary.sweep": bench.node}), 60)
            done = await reap.remove_all_of(engine, bench.node)
            assert [it.kind for it in done.removed] == ["containers"]
            assert [(it.id, "in use" in why) for it, why in done.failed] == [(volume, True)]
            docker("rm", user)
            done = await reap.remove_all_of(engine, bench.node)
            assert [it.id for it in done.removed] == [volume]
            assert await reap.remove_all_of(engine, bench.node) == reap.Reaped((), ())

    asyncio.run(scenario())
