"""A Ray cluster of three nodes on this machine that outlives its drivers, as a process.

Writes its address to the file given, and ends when its standard input does.
"""

from __future__ import annotations

import sys
from pathlib import Path


def main(target: Path) -> None:
    """Serves until standard input ends."""
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    try:
        for _ in range(2):
            cluster.add_node(num_cpus=1)
        target.with_suffix(".new").write_text(cluster.address)
        target.with_suffix(".new").rename(target)
        sys.stdin.read()
    finally:
        cluster.shutdown()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
