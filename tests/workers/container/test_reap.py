from __future__ import annotations

import asyncio
import contextlib
import json
import secrets
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.base_image import base_image
from tests.workers.container.engines import Bench, docker, spec
from workers.container import ownership, reap
from workers.container.reap import Scope, why_removable

DEAD = f"{2**22 + 1}:1:{ownership.pid_namespace()}"
SIBLING = "tests.workers.container.sibling"
LABELS = st.dictionaries(
    st.sampled_from([ownership.EXPIRES, ownership.OWNER, ownership.NODE, ownership.SWEEP, "x"]),
    st.sampled_from(["", "99", "100", "-1", "9" * 30, "٣", "1e1", "here", "there", "gone", "up"]),
)


@given(labels=LABELS, own=st.booleans(), given_up=st.booleans())
def test_only_what_is_ours_and_not_needed_is_removable(
    labels: dict[str, str], own: bool, given_up: bool
) -> None:
    labels = ownership.with_proof("a" if own else "b", labels)
    lives = (lambda owner: owner == "up", lambda owner: owner == "gone")
    proved = why_removable("a", labels, "here", 100.0, given_up, lives) is not None
    owner = labels[ownership.OWNER]
    orphan = labels[ownership.NODE] == "here" and owner == "gone"
    expired = labels[ownership.EXPIRES] == "99"
    needless = given_up or (owner != "up" and (orphan or expired))
    assert proved == bool(own and owner and needless)


def test_labels_without_their_proof_are_somebody_elses() -> None:
    labels = {ownership.NODE: "here", ownership.OWNER: DEAD, ownership.EXPIRES: "1"}
    assert why_removable("a", labels, "here", 100.0) is None
    assert why_removable("a", {**labels, ownership.PROOF: ""}, "here", 100.0) is None
    ours = ownership.with_proof("a", labels)
    assert why_removable("a", ours, "here", 100.0) is not None
    assert why_removable("a", {**ours, ownership.EXPIRES: "2"}, "here", 100.0) is None


def test_the_reason_is_told() -> None:
    def why(given_up: bool = False, **labels: str) -> str | None:
        named = {f"apiary.{name}": value for name, value in labels.items()}
        return why_removable("a", ownership.with_proof("a", named), "here", 100.0, given_up)

    assert why(owner="x", expires="40") == "expired 60 s ago"
    assert why(owner=DEAD, node="here") == f"its owner, process {DEAD.split(':')[0]}, is gone"
    assert why(owner=DEAD, node="there") is None
    here = f"{DEAD}:{ownership.boot()}"
    assert why(owner=here, node="there") == f"its owner, process {DEAD.split(':')[0]}, is gone"
    assert why(owner=ownership.this_process(), node="there") is None
    assert why(given_up=True, owner="x") == "its owner could not remove it"


def container(bench: Bench, *, proved: bool = True, **labels: str) -> str:
    """A running container, as a process with these labels would have made it."""
    name = f"apiary-{secrets.token_hex(8)}"
    named = {f"apiary.{key}": value for key, value in labels.items()}
    if proved:
        named = ownership.with_proof(name, named)
    return docker(
        *("run", "--detach", "--network=none", f"--name={name}", f"--label=test={bench.node}"),
        *(f"--label={key}={value}" for key, value in named.items()),
        *(base_image(), "sleep", "1000"),
    )


@pytest.mark.alone
@pytest.mark.docker
def test_the_reaper_removes_only_what_is_proved_to_be_ours(bench: Bench) -> None:
    live = ownership.this_process()
    away = f"{2**22 + 1}:1:0"
    removable = {
        container(bench, node=bench.node, owner=DEAD),
        container(bench, node=bench.node, owner=DEAD, expires="9999999999"),
        container(bench, node="its former name", owner=f"{DEAD}:{ownership.boot()}"),
        container(bench, node="elsewhere", owner=away, expires="1"),
        container(bench, node="elsewhere", owner=DEAD, expires="1"),
    }
    kept = {
        container(bench),
        container(bench, expires="1"),
        container(bench, sweep="s", node=bench.node),
        container(bench, node=bench.node, owner=away, expires="soon"),
        container(bench, node=bench.node, owner=away, expires="9999999999"),
        container(bench, node="elsewhere", owner=DEAD),
        container(bench, node=bench.node, owner=live, expires="1"),
        container(bench, node=bench.node, owner=DEAD, expires="1", proved=False),
    }
    things = {}
    for kind, proved in (("volume", True), ("network", True), ("volume", False)):
        name = f"{bench.node}-{kind}-{proved}"
        labels = {ownership.OWNER: DEAD, ownership.NODE: bench.node, ownership.EXPIRES: "1"}
        labels = ownership.with_proof(name, labels) if proved else labels
        docker(kind, "create", *(f"--label={k}={v}" for k, v in labels.items()), name)
        things[name] = proved
    stranger = docker("network", "create", f"{bench.node}-stranger", "--label=apiary.expires=1")

    async def scenario() -> None:
        engine = await bench.open()
        try:
            would = await reap.leftovers(engine)
            done = await reap.reap(engine)
        finally:
            await engine.close()
        ids = {it.id for it in done.removed}
        assert {it.id for it in would} >= removable
        assert ids >= removable | {f"{bench.node}-volume-True"}
        assert not ids & (kept | {stranger})
        assert {it.kind for it in done.removed} >= {"containers", "volumes", "networks"}
        assert not {failed.id for failed, _ in done.failed} & (kept | removable)

    try:
        asyncio.run(scenario())
        left = docker("ps", "-aq", "--no-trunc", "--filter", f"label=test={bench.node}").split()
        assert set(left) == kept
        assert f"{bench.node}-network-True" not in docker("network", "ls")
        assert f"{bench.node}-volume-False" in docker("volume", "ls", "-q")
        assert f"{bench.node}-stranger" in docker("network", "ls")
    finally:
        docker("rm", "--force", *kept)
        docker("volume", "rm", f"{bench.node}-volume-False")
        docker("network", "rm", f"{bench.node}-stranger")


@pytest.mark.alone
@pytest.mark.docker
def test_what_cannot_be_removed_is_told_and_stops_nothing(bench: Bench) -> None:
    volume = f"{bench.node}-volume"
    labels = {ownership.OWNER: DEAD, ownership.NODE: bench.node}
    proved = ownership.with_proof(volume, labels)
    docker("volume", "create", *(f"--label={k}={v}" for k, v in proved.items()), volume)
    user = docker(
        *("create", "--label", f"test={bench.node}", "--volume", f"{volume}:/x"),
        *(base_image(), "true"),
    )
    dead = container(bench, node=bench.node, owner=DEAD)

    async def scenario() -> None:
        async with bench.engine() as engine:
            done = await reap.reap(engine)
            assert dead in {it.id for it in done.removed}
            assert [("in use" in why) for it, why in done.failed if it.id == volume] == [True]
            docker("rm", user)
            done = await reap.reap(engine)
            assert volume in {it.id for it in done.removed}

    asyncio.run(scenario())


@pytest.mark.alone
@pytest.mark.docker
def test_what_its_owner_could_not_remove_goes_with_the_next_round(bench: Bench) -> None:
    async def scenario() -> None:
        async with bench.engine() as engine:
            used, left = [await engine.start(spec("sleep", "1000"), 60) for _ in range(2)]
            engine.given_up.add(left.id)
            done = await reap.reap(engine)
            assert left.id in {it.id for it in done.removed}
            assert used.id not in {it.id for it in done.removed}
            assert engine.given_up == set()
            await used.remove(60)

    asyncio.run(scenario())


@dataclass
class Sibling:
    """A running process of another sweep, and what it made."""

    process: subprocess.Popen[str]
    made: dict[str, str]
    tag: str = field(default="")


@contextlib.contextmanager
def sibling(bench: Bench, tag: str) -> Iterator[Sibling]:
    process = subprocess.Popen(
        [sys.executable, "-m", SIBLING, bench.node, str(bench.directory), tag],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        yield Sibling(process, json.loads(process.stdout.readline()), tag)
    finally:
        process.kill()
        process.communicate()


def labels_of(kind: str, name: str) -> list[str]:
    """The labels of a thing as options of Docker's command line."""
    found = json.loads(docker(kind, "inspect", name, "--format", "{{json .Config.Labels}}"))
    return [f"--label={key}={value}" for key, value in found.items()]


@pytest.mark.alone
@pytest.mark.docker
def test_a_running_sweep_and_strangers_keep_all_they_have(bench: Bench) -> None:
    """A sibling sweep runs; strangers copied every label; the clock is a year ahead."""
    tag, other = f"apiary/{bench.node}:1", f"stranger/{bench.node}"
    scope = Scope(workspace=bench.directory, unused_days=0.0)
    later = datetime.now(UTC) + timedelta(days=365)

    async def reaped(only: set[str], now: datetime | None = None) -> set[str]:
        """What would go; of that, only the test's own is removed: others use this engine too."""
        engine = await bench.open()
        try:
            found = await reap.leftovers(engine, scope, now)
            await reap.remove(engine, [it for it in found if it.id in only])
        finally:
            await engine.close()
        return {it.id for it in found}

    with sibling(bench, tag) as running:
        made = running.made
        copied = labels_of("container", made["container"])
        docker("tag", tag, f"{other}:tagged")
        context = bench.directory / "child"
        context.mkdir()
        (context / "Dockerfile").write_text(f"FROM {tag}\nENV CHILD=1\n")
        docker("build", "--tag", f"{other}:child", str(context))
        marked = f"--label=test={bench.node}"
        strangers = [
            docker("run", "-d", marked, *copied, base_image(), "sleep", "1000"),
            docker("run", "-d", marked, f"{other}:child", "sleep", "1000"),
        ]
        docker("volume", "create", *copied, f"{bench.node}-copied")
        try:
            ours = {*made.values(), tag, *strangers, f"{bench.node}-copied"}
            assert not asyncio.run(reaped(ours, later)) & ours
            assert docker("inspect", made["container"], "--format", "{{.State.Running}}") == "true"
            assert docker("image", "inspect", tag, "--format", "{{.Id}}") == made["image"]
            assert Path(made["bundle"], "lib").is_dir()
            running.process.kill()
            running.process.wait()
            # The image goes once no container is made of it any more.
            assert asyncio.run(reaped(ours)) & ours == {made["container"], made["bundle"]}
            assert asyncio.run(reaped(ours, later)) & ours == {tag}
            assert not Path(made["bundle"]).exists()
            found = docker("ps", "-q", "--no-trunc", "--filter", f"label=test={bench.node}")
            assert set(found.split()) == set(strangers)
            for kept in (f"{other}:tagged", f"{other}:child", base_image()):
                docker("image", "inspect", kept)
            assert f"{bench.node}-copied" in docker("volume", "ls", "-q")
        finally:
            docker("rm", "--force", *strangers)
            docker("volume", "rm", f"{bench.node}-copied")
            docker("image", "rm", f"{other}:child", f"{other}:tagged")
