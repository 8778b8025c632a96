"""A Ray cluster that grows and shrinks: Ray's autoscaler, and its provider of pretended machines.

A node that comes is a set of Ray's servers on this machine; one that is taken away is ended.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import socket
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scheduler.bench.command import PACKAGES
from scheduler.bench.processes import Found, end_all, marked, start, wait_for
from scheduler.ray_client import NODE_RESOURCE, OBJECT_STORE_BYTES

UP_S = 120.0
IDLE_MINUTES = 0.05
"""After which a machine that nothing holds is taken away: three seconds."""
HEAD, HEAD_TYPE = "f" * 51 + "00000", "ray.head.default"
"""Ray's own names for the head of a pretended cluster."""
EMPTY = ("setup_commands", "head_setup_commands", "worker_setup_commands", "cluster_synced_files")
"""What Ray wants to see in a file whose provider it does not know."""
PROVIDER = "ray.autoscaler._private.fake_multi_node.node_provider.FakeMultiNodeProvider"


def cluster_file(gcs: str, most: int) -> dict[str, Any]:
    """A cluster file: machines of the kind ``trials`` come when they are asked for.

    On real machines the provider and ``node_config`` are others, and that is all.
    """
    trials = {NODE_RESOURCE: 1, "object_store_memory": OBJECT_STORE_BYTES}
    return {
        "cluster_name": "pretended",
        "max_workers": most,
        "idle_timeout_minutes": IDLE_MINUTES,
        "upscaling_speed": 1.0,
        "provider": {
            "type": "external",
            "module": PROVIDER,
            "gcs_address": gcs,
            "head_node_id": HEAD,
            "launch_multiple": True,
            "disable_node_updaters": True,
            "disable_launch_config_check": True,
        },
        "head_node_type": HEAD_TYPE,
        "available_node_types": {
            HEAD_TYPE: {"resources": {}, "node_config": {}, "max_workers": 0},
            "trials": {
                "resources": trials,
                "node_config": {},
                "min_workers": 0,
                "max_workers": most,
            },
        },
        **{name: [] for name in EMPTY},
    }


@dataclass(frozen=True)
class Autoscaled:
    """A cluster with no node for trials yet."""

    address: str
    environment: dict[str, str]
    """Of its drivers."""
    folder: Path
    mark: str

    def raylets(self) -> dict[str, int]:
        """The node managers of the machines that came: Ray's id to process."""
        found = {}
        for each in self._processes():
            node = _word(each.title, "--node_id=") or _variable(each.pid)
            if "/raylet " in each.title and node and node != HEAD:
                found[node] = each.pid
        return found

    def actors(self) -> list[int]:
        """The processes of node actors."""
        return [each.pid for each in self._processes() if "NodeActor" in each.title]

    def _processes(self) -> list[Found]:
        return marked(self.mark, self.folder)


def parent_of(actor: int) -> int:
    """The node manager that started a node actor."""
    stat = Path(f"/proc/{actor}/stat").read_text()
    return int(stat.rpartition(")")[2].split()[1])


def _word(title: str, name: str) -> str:
    return next((w.removeprefix(name) for w in title.split() if w.startswith(name)), "")


def _variable(pid: int) -> str:
    name = "RAY_OVERRIDE_NODE_ID_FOR_TESTING="
    try:
        words = Path(f"/proc/{pid}/environ").read_text(errors="replace").split("\0")
    except OSError:
        return ""
    return next((word.removeprefix(name) for word in words if word.startswith(name)), "")


@contextmanager
def autoscaled(most: int) -> Iterator[Autoscaled]:
    """A cluster of a head and at most so many machines."""
    folder = Path(tempfile.mkdtemp(prefix="as-", dir="/tmp"))  # sockets' paths must be short
    mark = secrets.token_hex(8)
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    gcs = f"127.0.0.1:{port}"
    token, file = folder / "token", folder / "cluster.json"
    token.write_text(secrets.token_hex(32))
    file.write_text(json.dumps(cluster_file(gcs, most)))
    drivers = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN_PATH": str(token)}
    servers = {
        **os.environ,
        **drivers,
        "PYTHONPATH": str(PACKAGES),
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_enable_autoscaler_v2": "1",
        "RAY_FAKE_CLUSTER": "1",
        "RAY_CLOUD_INSTANCE_ID": HEAD,
        "AUTOSCALER_UPDATE_INTERVAL_S": "1",
        # One that is gone refuses at once, and is missed after five refusals.
        "RAY_health_check_period_ms": "1000",
    }
    words = (
        sys.executable, "-m", "ray.scripts.scripts", "start", "--head", "--num-cpus", "0",
        "--node-ip-address", "127.0.0.1", "--port", str(port), "--temp-dir", str(folder / "r"),
        "--include-dashboard", "false", "--object-store-memory", str(OBJECT_STORE_BYTES),
        "--autoscaling-config", str(file),
    )  # fmt: skip
    try:
        started = start(words, servers, mark, folder, folder / "log")
        wait_for(f"Ray (see {folder / 'log'})", lambda: started.poll() is not None, UP_S)
        assert started.returncode == 0, (folder / "log").read_text()
        yield Autoscaled(gcs, drivers, folder, mark)
    finally:
        end_all(mark, folder)
        shutil.rmtree(folder, ignore_errors=True)
