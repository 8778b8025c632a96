"""``python -m tests.workers.relay.fuzzing --messages 1000000 --seed 1``: the long run."""

from __future__ import annotations

import argparse
import sys

from tests.workers.relay.fuzzing.campaign import Campaign


def main() -> None:
    """Runs one campaign and writes its figures; a broken invariant ends it with a traceback."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=1_000_000)
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    tally = Campaign(asked.seed).run(asked.messages, asked.seconds)
    sys.stdout.write("\n".join(tally.lines()) + "\n")


if __name__ == "__main__":
    main()
