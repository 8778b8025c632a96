"""A Ray cluster of several nodes on this machine that outlives its drivers, as a process.

It takes the number of nodes and a file for the address, adds a node for every line on its
standard input, and ends with it. Ray's own utility for clusters in tests starts the servers.
"""

from __future__ import annotations

import sys
import threading
from pathlib import Path
from typing import Any

from scheduler.ray_client import OBJECT_STORE_BYTES

COLLECT_S = 0.5
NODE = {"num_cpus": 1, "object_store_memory": OBJECT_STORE_BYTES}


def main(nodes: int, target: Path) -> None:
    """Serves until standard input ends."""
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={**NODE, "include_dashboard": False})
    ended = threading.Event()
    reaper = threading.Thread(target=_collect, args=(cluster, ended))
    reaper.start()
    try:
        for _ in range(nodes - 1):
            cluster.add_node(**NODE)
        _say(target, cluster.address)
        for number, _ in enumerate(sys.stdin, 1):
            cluster.add_node(**NODE)
            _say(target.with_suffix(f".{number}"), "")
    finally:
        ended.set()
        reaper.join()
        cluster.shutdown()


def _collect(cluster: Any, ended: threading.Event) -> None:
    """Takes notice of servers that died: workers think that a zombie is a living node manager."""
    while not ended.wait(COLLECT_S):
        for node in list(cluster.list_all_nodes()):
            for servers in list(node.all_processes.values()):
                for server in servers:
                    server.process.poll()


def _say(target: Path, text: str) -> None:
    fresh = target.with_suffix(".new")
    fresh.write_text(text)
    fresh.rename(target)


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]))
