"""What a process may do to outlive its agent; each is a shell command that returns at once."""

from __future__ import annotations

LOOP = "while :; do {body}; sleep 0.01; done"
IGNORING = "trap '' TERM INT HUP QUIT USR1 USR2; "

FORGE = (
    'for d in / /logs; do mkdir -p "$d/verifier" 2>/dev/null; done; '
    "printf '{\"reward\": 1.0}' > /logs/verifier/reward.json; echo 1 > /logs/verifier/reward.txt"
)
"""Writes the reward that a verifier should write."""


def detached(body: str) -> str:
    """Runs a loop of its own session, two forks away from whoever started it."""
    loop = (IGNORING + LOOP.format(body=body)).replace("'", "'\\''")
    return f"(setsid sh -c '{loop}' </dev/null >/dev/null 2>&1 &)"


FORK_BOMB = (
    "(setsid python3 -c '\n"
    "import os, time\n"
    "while True:\n"
    "    try:\n"
    "        os.fork()\n"
    "    except OSError:\n"
    "        time.sleep(0.01)\n"
    "' </dev/null >/dev/null 2>&1 &)"
)

DOUBLE_FORK = detached("true")
REWRITER = detached(FORGE)
