"""Whether this machine can run trials: one finding a line, with what to do about it.

Facts come from the engine, the store and the surroundings; what they mean is decided in
functions of their own, which need none of them.
"""

from __future__ import annotations

import asyncio
import platform
import re
import secrets
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Literal

from scheduler.clocks import Reading
from scheduler.errors import RelayNotReadyError
from scheduler.manifest import ManifestError, load_endpoints
from scheduler.manifest.endpoints import key_problem
from scheduler.manifest.programs import ProgramsError, read_programs
from scheduler.relay_check import look_at_relay, relay_line
from scheduler.settings import LOCAL_BASE, Settings
from scheduler.store_calls import store_reading
from workers.config import DOOR_VARIABLE
from workers.container.api import MissingError
from workers.container.docker import DockerEngine
from workers.container.interface import ContainerError
from workers.container.probe import EngineFacts, probe
from workers.contract.buzz import PROGRAMS, PROVIDERS
from workers.contract.relay import Deployment
from workers.contract.spec import Limits
from workers.storage import Store, StoreError, StoreUrlError, open_store

OLDEST_RAY = (2, 50)
CALL_S = 20.0
"""How long one question to the engine may take."""
MAX_SKEW_S = 2.0
"""Relays and stores refuse what is signed by a clock that is off by much more."""
DOOR_TODO = (
    "run as root, or start `python -m workers.container.door_helper --socket PATH --allow-uid UID` "
    "as root and name PATH in APIARY_DOOR"
)
STORE_CLOCK = "clock of the store"
COMFORT_BYTES = 10 * 1024**3
"""Below this free space a sweep with many images may run out."""


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at."""

    subject: str
    state: Literal["ok", "warn", "fail"]
    """``warn``: trials run, but something may be missed."""
    found: str
    todo: str = ""
    """What to do; empty if nothing."""


def ok(subject: str, found: str) -> Finding:
    """All is well."""
    return Finding(subject, "ok", found)


async def examine(
    settings: Settings,
    store_url: str,
    endpoint_files: Sequence[Path],
    programs: Path | None = None,
    deployment: Deployment | None = None,
) -> list[Finding]:
    """Looks at everything; never raises for what it finds.

    Args:
        settings: of the command.
        store_url: the store that sweeps would use.
        endpoint_files: to be checked strictly; empty: what is shipped, if it is here.
        programs: the folder of agent ``buzz``'s programs; null: none is named.
        deployment: whose relay sweeps would use; null: none.
    """
    findings = [python_finding(), ray_finding(_version("ray"))]
    helper = settings.environment.get(DOOR_VARIABLE)
    findings += await _engine_findings(settings.base_image, Path(helper) if helper else None)
    findings.append(await asyncio.to_thread(store_finding, store_url))
    if findings[-1].state != "fail":
        findings.append(await asyncio.to_thread(store_clock_finding, store_url))
    findings += endpoint_findings(endpoint_files, settings.environment)
    findings.append(await asyncio.to_thread(buzz_finding, programs))
    findings.append(await asyncio.to_thread(relay_finding, deployment, settings.environment))
    return findings


def buzz_finding(folder: Path | None) -> Finding:
    """Whether agent ``buzz`` could run here, and which providers it reaches; blocks."""
    subject = "agent buzz"
    reach = (
        f"{', '.join(PROVIDERS)} are led to the gateway by their own variables, Databricks with a "
        "token only: its sign-in by browser is not possible in a container"
    )
    if folder is None:
        return ok(subject, f"{reach}; --agent-bin-dir DIR looks at its programs")
    try:
        stack = read_programs(folder).stack
    except ProgramsError as error:
        todo = f"put Linux builds of {', '.join(PROGRAMS)} for this machine into {folder}"
        return Finding(subject, "fail", str(error), todo)
    digests = ", ".join(f"{name} {stack.digests[name][:12]}" for name in PROGRAMS)
    return ok(subject, f"{digests}; {reach}")


def relay_finding(deployment: Deployment | None, environment: Mapping[str, str]) -> Finding:
    """Whether a deployment's relay would serve trials; blocks."""
    if deployment is None:
        return ok("relay", "every trial has its own; --relay-url URL looks at a deployment's")
    try:
        seen = look_at_relay(deployment, environment, key_needed=True)
    except RelayNotReadyError as error:
        return Finding("relay", "fail", str(error), "see docs/external-relay.md")
    admits = f"admits whom the owner of ${deployment.owner_key_env} attests"
    said = relay_line(deployment, seen).removeprefix("relay ")
    return ok("relay", f"{said}; {admits}")


def python_finding() -> Finding:
    """The interpreter."""
    return ok("Python", f"{platform.python_version()} at {sys.executable}")


def ray_finding(version: str | None) -> Finding:
    """The installed Ray, which is not loaded for this."""
    if version is None:
        return Finding("Ray", "fail", "not installed", "run `bash deploy/setup.sh`")
    numbers = tuple(int(part) for part in re.findall(r"\d+", version)[:2])
    if numbers < OLDEST_RAY:
        wanted = ".".join(str(part) for part in OLDEST_RAY)
        return Finding("Ray", "fail", version, f"install Ray {wanted} or newer")
    return ok("Ray", version)


async def _engine_findings(base_image: str | None, door: Path | None) -> list[Finding]:
    try:
        engine = await DockerEngine.open(platform.node(), door=door)
    except ContainerError as error:
        todo = "run `bash deploy/setup.sh`, or start Docker and let this user reach its socket"
        return [Finding("Docker", "fail", str(error), todo)]
    try:
        image = await _image_id(engine, base_image)
        facts = await probe(engine, base_image if image else None)
        info = await asyncio.to_thread(engine.api.info, CALL_S)
    except ContainerError as error:
        return [Finding("Docker", "fail", str(error), "see the engine's own log")]
    finally:
        await engine.close()
    findings = engine_findings(facts, Limits().disk_free_mb)
    findings.insert(1, base_finding(base_image, image))
    findings.append(clock_finding(str(info.get("SystemTime", "")), datetime.now(UTC)))
    return findings


async def _image_id(engine: DockerEngine, reference: str | None) -> str | None:
    if reference is None:
        return None
    try:
        return await asyncio.to_thread(engine.api.image_id, reference, CALL_S)
    except MissingError:
        return None


def base_finding(reference: str | None, image: str | None) -> Finding:
    """The base image, and whether it is the real one or what set-up built for want of it."""
    if reference is None:
        found = "no APIARY_BASE_IMAGE is set, and this folder has no .apiary/base-image"
        todo = "start in the checkout, after `bash deploy/setup.sh`"
        return Finding("base image", "fail", found, todo)
    if image is None:
        todo = "run `bash deploy/setup.sh`, or name another in APIARY_BASE_IMAGE"
        return Finding("base image", "fail", f"{reference} is not in this engine", todo)
    kind = "local fallback" if reference.startswith(LOCAL_BASE) else "pulled"
    return ok("base image", f"{reference} ({kind}), {image[:19]}")


def engine_findings(facts: EngineFacts, disk_free_mb: int) -> list[Finding]:
    """What the engine's facts mean."""
    builder = "BuildKit" if facts.has_buildkit else "classic builder"
    engine = f"engine {facts.version}, {facts.storage_driver}, cgroup v{facts.cgroup_version}"
    findings = [
        ok("Docker", f"{engine}, {builder}"),
        _kernel_finding(facts),
        _door_finding(facts),
    ]
    if facts.fence_problem:
        findings.append(
            Finding(
                "public network",
                "warn",
                facts.fence_problem,
                "run sweeps with `--network sealed`, or as root with iptables installed",
            )
        )
    else:
        findings.append(ok("public network", "can be fenced off from this machine"))
    findings.append(disk_finding(facts, disk_free_mb))
    return findings


def _kernel_finding(facts: EngineFacts) -> Finding:
    if facts.same_kernel is None:
        return Finding("kernel", "warn", "not tried: there is no base image", "see base image")
    if not facts.same_kernel:
        return Finding(
            "kernel",
            "fail",
            f"containers run on another kernel ({facts.kernel})",
            "Docker Desktop or a remote engine cannot be used: run Apiary on the engine's machine",
        )
    return ok("kernel", f"{facts.kernel}, the engine's and ours")


def _door_finding(facts: EngineFacts) -> Finding:
    subject = "sockets in containers"
    if facts.door_problem is None:
        return Finding(subject, "warn", "not tried: there is no base image", "see base image")
    if facts.door_problem:
        return Finding(subject, "fail", facts.door_problem, DOOR_TODO)
    if facts.freezer_problem:
        todo = f"{DOOR_TODO}; until then `freeze: all` restarts a container instead"
        return Finding(subject, "warn", facts.freezer_problem, todo)
    return ok(subject, "a loopback socket was opened inside one, and all its processes killed")


def disk_finding(facts: EngineFacts, disk_free_mb: int) -> Finding:
    """Free space for images and containers."""
    if facts.free_bytes is None:
        return Finding("disk", "warn", f"{facts.root} cannot be seen from here", "see the engine's")
    quota = "quota per container" if facts.has_quota else "no quota per container: polled instead"
    found = f"{facts.free_bytes / 1024**3:.1f} GiB free in {facts.root}, {quota}"
    if facts.free_bytes < disk_free_mb * 1024**2:
        return Finding("disk", "fail", found, "free some: trials stop below the sweep's watermark")
    if facts.free_bytes < COMFORT_BYTES:
        return Finding("disk", "warn", found, "free some: many images may not fit")
    return ok("disk", found)


def clock_finding(engine_time: str, now: datetime) -> Finding:
    """This machine's clock against the engine's.

    Args:
        engine_time: RFC 3339, down to nanoseconds; empty if the engine did not say.
        now: aware.
    """
    match = re.match(r"(.{19})(\.\d{1,6})?\d*(Z|[+-]\d\d:\d\d)$", engine_time)
    if match is None:
        return Finding("clock", "warn", "the engine did not tell its time", "compare it by hand")
    moment, fraction, zone = match.groups()
    engine = datetime.fromisoformat(f"{moment}{fraction or ''}{zone.replace('Z', '+00:00')}")
    skew = abs((now - engine).total_seconds())
    found = f"{skew:.2f} s from the engine's"
    if skew > MAX_SKEW_S:
        return Finding("clock", "fail", found, "set both clocks by NTP: signatures carry the time")
    return ok("clock", found)


def store_finding(url: str) -> Finding:
    """Whether the store takes an object, refuses a second at its key, and forgets it; blocks."""
    try:
        store = open_store(url)
        problem = _create_twice(store)
    except StoreUrlError as error:
        return Finding("store", "fail", str(error), "correct --store or APIARY_STORE")
    except StoreError as error:
        todo = "check address, credentials and clock; the bucket must exist"
        if url.startswith("file:"):
            todo = "name a folder in which this user may write, by --store or APIARY_STORE"
        return Finding("store", "fail", f"{url}: {error}", todo)
    if problem:
        todo = "use a store with conditional writes: without them a result could count twice"
        return Finding("store", "fail", f"{url}: {problem}", todo)
    return ok("store", f"{url} is writable, and creates an object once only")


def store_clock_finding(url: str) -> Finding:
    """This machine's clock against the store's; blocks."""
    try:
        reading = store_reading(open_store(url))
    except StoreError as error:
        return Finding(STORE_CLOCK, "warn", str(error), "compare both clocks by hand")
    if reading is None:
        return ok(STORE_CLOCK, "the store has none of its own")
    return store_skew_finding(reading)


def store_skew_finding(reading: Reading) -> Finding:
    """What the distance of a store's clock means."""
    side = "ahead of" if reading.ahead_s > 0 else "behind"
    found = f"{abs(reading.ahead_s):.1f} s {side} ours, give or take {reading.error_s:.1f} s"
    if reading.skew_s is None:
        return ok(STORE_CLOCK, found)
    todo = "set both clocks by NTP: a store refuses requests that are signed minutes off"
    return Finding(STORE_CLOCK, "fail", found, todo)


def _create_twice(store: Store) -> str:
    """What is wrong with the store's conditional create; empty if nothing."""
    key = f"doctor/{secrets.token_hex(8)}"
    try:
        problem = _problem_at(store, key)
    except StoreError:
        # What failed first is to be told, not that nothing can be tidied up either.
        with suppress(StoreError):
            store.delete(key)
        raise
    store.delete(key)
    return problem


def _problem_at(store: Store, key: str) -> str:
    if not store.create(key, b"first"):
        return "the first create of a new key was refused"
    if store.create(key, b"second"):
        return "a second create of the same key was accepted"
    if store.get(key) != b"first":
        return "what was written is not what is read"
    return ""


def endpoint_findings(given: Sequence[Path], environment: Mapping[str, str]) -> list[Finding]:
    """Whether key variables are set: a must for files that were named, else good to know."""
    shipped = sorted(Path("deploy/endpoints").glob("*.json"))
    findings = []
    for path in given or shipped:
        subject = f"endpoints {path.name}"
        try:
            endpoints = load_endpoints(path)
        except ManifestError as error:
            findings.append(
                Finding(f"endpoints {path.name}", "fail", str(error), "correct the file")
            )
            continue
        variables = {name for each in endpoints.values() for name in each.secret_names}
        missing = sorted(name for name in variables if key_problem(name, "a key", environment))
        if missing:
            users = sorted(
                name
                for name, each in endpoints.items()
                if not set(missing).isdisjoint(each.secret_names)
            )
            findings.append(
                Finding(
                    subject,
                    "fail" if given else "warn",
                    f"not set: {', '.join(missing)}",
                    f"export {' and '.join(missing)} before a sweep that uses {', '.join(users)}",
                )
            )
        else:
            keys = ", ".join(f"${name}" for name in sorted(variables)) or "no key needed"
            findings.append(ok(subject, keys))
    return findings


def _version(distribution: str) -> str | None:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None
