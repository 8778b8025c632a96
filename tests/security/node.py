"""A node with three hostile trials: real ones, whose model has the probe run by its shell tool.

A Buzz-native task without network, the same with one, and a Harbor task with one, which keeps
Docker's usual privileges. Their provider has a key and repeats it in its answers. ``observe`` runs
everything once; tests look at what it saw.
"""

from __future__ import annotations

import asyncio
import base64
import json
import re
import shutil
import subprocess
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aiohttp import web

from tests.security import outside
from tests.workers.container.engines import docker
from tests.workers.container.hostile import detached
from tests.workers.gateway.upstreams import KEY, provider
from tests.workers.trial.stage import DOCKERFILE, Stage, end_of_turn, shell_call, stage
from workers.contract.endpoint import Endpoint
from workers.contract.trial import TrialEnd
from workers.trial.handoff import GATEWAY_PORT

FOLDER = Path(__file__).parent
STATE_TASK = FOLDER.parent / "state_tasks/keep-serving"
TIMEOUT_S = 90.0
PROBE = (FOLDER / "probe.py").read_text("utf-8")
KINDS = ("sealed", "public", "harbor")
SERVED, HEARD = 8000, 9000
ROOTS = ("/opt", "/logs", "/tests", "/run", "/etc", "/tmp", "/root", "/home", "/app")
"""Where files are searched for a key: the mounts, and wherever programs leave things."""

NEIGHBOUR = f"""
import socket, threading
def web(server):
    while True: server.accept()[0].close()
def note(link):
    while True:
        with open("/tmp/heard", "ab") as out: out.write(link.recv(1000) + bytes([10]))
link = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
link.bind(("0.0.0.0", {HEARD}))
threading.Thread(target=note, args=(link,), daemon=True).start()
web(socket.create_server(("0.0.0.0", {SERVED})))
"""

LOOK = """\
import json, os, pathlib, socket
def word(act):
    try:
        act()
    except OSError as error:
        return type(error).__name__
    return "done"
told = {
    "interfaces": os.listdir("/sys/class/net"),
    "relay": word(lambda: socket.create_connection(("localhost", 3600), 2)),
    "gateway": word(lambda: socket.create_connection(("localhost", 3601), 2)),
    "variables": sorted(os.environ),
    "logs": sorted(os.listdir("/logs")),
    "tests": word(lambda: pathlib.Path("/tests/more").touch()),
    "evidence": word(lambda: open("/logs/artifacts/buzz-evidence.json", "r+").close()),
}
pathlib.Path("/logs/verifier/details.json").write_text(json.dumps(told))
pathlib.Path("/logs/verifier/reward.json").write_text(json.dumps({"reward": 1.0}))
"""
"""A verifier that says what it can reach."""


def written(file: str, text: str) -> str:
    """A line of a Dockerfile that makes a file."""
    return f"RUN echo {base64.b64encode(text.encode()).decode()} | base64 -d > {file}\n"


TOOLS = written("/probe.py", PROBE) + written("/neighbour.py", NEIGHBOUR)
"""In the image: a model's own words would fill its memory."""
START = (
    f"{detached('python3 /neighbour.py')}; "
    f"until python3 -c 'import socket; socket.create_connection((\"localhost\", {SERVED}))'; "
    "do sleep 0.1; done 2>/dev/null"
)
"""Once it has answered it has left the process group that ends with the command."""


@dataclass
class Player:
    """The model of one trial: it says what a test wants done, and hears what came of it."""

    wanted: asyncio.Queue[str | None] = field(default_factory=asyncio.Queue)
    came: asyncio.Queue[Any] = field(default_factory=asyncio.Queue)

    async def answer(self, body: dict[str, Any]) -> dict[str, Any]:
        """The next answer to the agent."""
        last = body["messages"][-1]
        if last["role"] == "tool":
            await self.came.put(json.loads(last["content"]))
        command = await self.wanted.get()
        return end_of_turn() if command is None else shell_call(command)

    async def run(self, command: str) -> str:
        """What a command of the agent's shell tool wrote."""
        await self.wanted.put(command)
        told = await asyncio.wait_for(self.came.get(), TIMEOUT_S)
        assert told["exit_code"] == 0, told
        return str(told["stdout"])

    async def probe(self, **asked: Any) -> Any:
        """What the probe tells."""
        return json.loads(await self.run(f"python3 /probe.py '{json.dumps(asked)}'"))


@dataclass
class Seen:
    """What came of everything that was tried."""

    told: dict[str, Any] = field(default_factory=dict)
    """The probe's words, by the kind of trial."""
    addresses: dict[str, str] = field(default_factory=dict)
    heard: dict[str, list[str]] = field(default_factory=dict)
    """What came to each container's own listener."""
    inspected: dict[str, str] = field(default_factory=dict)
    """What the engine shows of each container."""
    world: list[str] = field(default_factory=list)
    """Datagrams that came to the world outside."""
    host: list[bytes] = field(default_factory=list)
    """Datagrams that came to the node itself."""
    port: int = 0
    """Where the node listens on all of its addresses."""
    control: Mapping[str, str] = field(default_factory=dict)
    """The same targets from the node itself: what is refused to a container does exist."""
    dropped_v6: int = 0
    """Packets of the bridge that the rule for IPv6 dropped meanwhile."""
    ends: dict[str, TrialEnd] = field(default_factory=dict)
    stages: dict[str, Stage] = field(default_factory=dict)
    keys_sent: set[str] = field(default_factory=set)
    """What the provider was shown as keys."""

    def details(self, kind: str) -> Any:
        """What a trial's verifier said of itself."""
        return json.loads(self.stages[kind].stored(self.ends[kind], "details.json"))


async def observe(folder: Path) -> Seen:
    """Starts everything, tries everything, ends everything."""
    seen = Seen()
    players = {kind: Player() for kind in KINDS}

    async def model(request: web.Request) -> web.Response:
        shown = request.headers.get("Authorization", "")
        seen.keys_sent.add(shown)
        answer = await players[request.path.split("/")[1]].answer(await request.json())
        return web.json_response({**answer, "echo": shown}, headers={"X-Echo": shown})

    async with AsyncExitStack() as stack:
        world = stack.enter_context(outside.world())
        host = stack.enter_context(outside.host())
        url = await stack.enter_async_context(provider(model))
        for kind in KINDS:
            seen.stages[kind] = await _opened(kind, folder, url, stack)
        trials = [asyncio.ensure_future(one.trial()) for one in seen.stages.values()]
        trying = asyncio.ensure_future(_try_all(seen, players, world, host))
        try:
            await asyncio.wait([trying, *trials], return_when=asyncio.FIRST_COMPLETED)
            assert trying.done(), [trial.result().record for trial in trials if trial.done()]
            trying.result()
        finally:
            for player in players.values():
                player.wanted.put_nowait(None)
            ends = await asyncio.wait_for(asyncio.gather(*trials), TIMEOUT_S)
        seen.ends = dict(zip(KINDS, ends, strict=True))
        seen.world, seen.host = world.heard, host.heard()
    return seen


async def _opened(kind: str, folder: Path, url: str, stack: AsyncExitStack) -> Stage:
    """Everything for a trial of one kind."""
    place = folder / kind
    place.mkdir()
    source = None
    if kind == "harbor":
        source = shutil.copytree(STATE_TASK, folder / "harbor-task")
        task = (source / "task.toml").read_text("utf-8")
        (source / "task.toml").write_text(task.replace('network_mode = "none"', ""))
        with (source / "environment/Dockerfile").open("a") as dockerfile:
            dockerfile.write(TOOLS)
    endpoint = Endpoint(provider="openai", api_key_env="K", base_url=f"{url}/{kind}/v1")
    return await stack.enter_async_context(
        stage(
            place,
            verifier=LOOK,
            dockerfile=DOCKERFILE + TOOLS,
            source=source,
            endpoint=endpoint,
            keys={"K": KEY},
            spec={"network": "sealed" if kind == "sealed" else "declared"},
        )
    )


async def _try_all(
    seen: Seen, players: Mapping[str, Player], world: outside.World, host: outside.Host
) -> None:
    await asyncio.gather(*(player.run(START) for player in players.values()))
    ids = {kind: container_of(one) for kind, one in seen.stages.items()}
    seen.inspected = {kind: docker("inspect", one) for kind, one in ids.items()}
    told = {kind: json.loads(text)[0] for kind, text in seen.inspected.items()}
    links = {
        kind: told[kind]["NetworkSettings"]["Networks"]["apiary"] for kind in ("public", "harbor")
    }
    seen.addresses = {kind: link["IPAddress"] for kind, link in links.items()}
    seen.port = host.tcp
    targets = targets_for(seen.addresses, host)
    before = dropped_v6()
    request = {"port": GATEWAY_PORT, "bytes": "POST /v1/messages HTTP/1.0\r\n\r\n"}
    asked = {
        "reach": targets,
        "acts": True,
        "agents": True,
        "talk": [request],
        "backwards": KEY[::-1],
        "roots": ROOTS,
    }
    tries = (player.probe(**asked) for player in players.values())
    seen.told = dict(zip(players, await asyncio.gather(*tries), strict=True))
    forged = forged_frames(links, host)
    seen.told["forged"] = await players["harbor"].probe(frames=forged)
    seen.told["unable"] = await players["public"].probe(frames=forged)
    seen.control = await asyncio.to_thread(_probe_here, targets)
    for kind in links:
        seen.heard[kind] = await asyncio.to_thread(_heard, ids[kind], seen.addresses[kind])
    seen.dropped_v6 = dropped_v6() - before


def container_of(one: Stage) -> str:
    """The container of a stage's trial."""
    (found,) = docker(
        "ps", "--quiet", "--filter", f"label=apiary.sweep={one.sweep.sweep}"
    ).splitlines()
    return found


def forged_frames(links: Mapping[str, Any], host: outside.Host) -> list[list[Any]]:
    """Frames that no kernel would send: to whom, and whose packet with what."""
    victim, forger = links["public"], links["harbor"]
    bridge = Path("/sys/class/net/apiary0/address").read_text().strip()
    found: list[list[Any]] = [
        [victim["MacAddress"], forger["IPAddress"], victim["IPAddress"], HEARD, "as myself"],
        [victim["MacAddress"], forger["Gateway"], victim["IPAddress"], HEARD, "as another"],
        [bridge, forger["IPAddress"], outside.INTERNET, outside.ECHO, "into the world"],
        [bridge, forger["IPAddress"], forger["Gateway"], host.udp, "to its host"],
    ]
    if outside.has_ipv6():
        found.append(["33:33:00:00:00:01", "fe80::4711", "ff02::1", host.udp, "by IPv6"])
    return found


def targets_for(addresses: Mapping[str, str], host: outside.Host) -> list[str]:
    """What every container tries to reach."""
    here = outside.host_addresses()
    found = [f"tcp {address} {host.tcp}" for address in here]
    found += [f"tcp {address} {port}" for address in here for port in outside.DOCKER_PORTS]
    found += [f"tcp {address} {SERVED}" for address in addresses.values()]
    found += [f"tcp {outside.INTERNET} {outside.HTTP}", f"udp {outside.INTERNET} {outside.ECHO}"]
    found += [f"tcp {address} {outside.HTTP}" for address in outside.METADATA]
    found += [f"udp {outside.METADATA[0]} {outside.DNS}", f"udp {outside.RESOLVER} {outside.DNS}"]
    if outside.has_ipv6():
        found.append(f"tcp {outside.METADATA_6} {outside.HTTP}")
        found += [f"tcp {address}%eth0 {host.tcp}" for address in outside.link_local_of_host()]
    return found


def _probe_here(targets: list[str]) -> Mapping[str, str]:
    """The same tries by the node itself."""
    found = [target for target in targets if "%" not in target]
    asked = json.dumps({"reach": found, "from": outside.SOURCE})
    command = ["python3", str(FOLDER / "probe.py"), asked]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    told: Mapping[str, str] = json.loads(done.stdout)["reach"]
    return told


def _heard(container: str, address: str) -> list[str]:
    """What came to a container's listener, up to a datagram of the node's own."""
    send = (
        "import socket, sys; link = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); "
        "link.sendto(b'the node', (sys.argv[1], int(sys.argv[2])))"
    )
    subprocess.run(["python3", "-c", send, address, str(HEARD)], check=True, timeout=60)
    wait = "until grep -q node /tmp/heard 2>/dev/null; do sleep 0.05; done; cat /tmp/heard"
    return docker("exec", container, "timeout", "30", "sh", "-c", wait).splitlines()


def dropped_v6() -> int:
    """Packets of the bridge to this node that the rule for IPv6 has dropped."""
    if not outside.has_ipv6():
        return 0
    command = ["ip6tables", "-w", "5", "-L", "INPUT", "-v", "-x", "-n"]
    told = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout
    rows = [row for row in told.splitlines() if re.search(r"\bDROP\b.*\bapiary0\b", row)]
    return sum(int(row.split()[0]) for row in rows)
