"""Documents of sweeps and trials, with sensible defaults."""

from __future__ import annotations

import json
from typing import Any

from rich.console import Console, RenderableType

from scheduler.claim_format import DriverClaim, claim_key
from scheduler.live_format import LiveSweep, live_key
from tests.scheduler.report.evidence import conversation
from workers.contract.live import LiveTrial
from workers.storage import Store

SWEEP = "demo-20260101T000000Z"
ATTEMPT = "ab" * 16


def sweep_document(**changes: Any) -> LiveSweep:
    """A running sweep of two conditions."""
    rows = [
        {
            "condition": name,
            "waiting": 5,
            "running": 2,
            "passed": 3,
            "failed": 1,
            "invalid": 1,
            "invalid_tries": 4,
        }
        for name in ("solver", "a-condition-with-quite-a-long-name")
    ]
    example = {
        "attempt": ATTEMPT,
        "try": "1-3",
        "index": 0,
        "task": "buzz-native/greet",
        "condition": "solver",
        "node": "n1",
        "ended_at": "2026-01-01T00:00:09Z",
        "detail": "said nothing",
    }
    values: dict[str, Any] = {
        "number": 1,
        "sweep": SWEEP,
        "generation": 1,
        "host": "box",
        "time": "2026-01-01T00:00:10Z",
        "state": "running",
        "stopping": False,
        "elapsed_s": 100.0,
        "attempts_per_minute": 6.0,
        "eta_s": 140.0,
        "conditions": rows,
        "spending": {"calls": 12, "input_tokens": 45_300, "output_tokens": 900, "cost_usd": 0.42},
        "failures": [
            {
                "blame": "model",
                "cause": "no_reply",
                "attempts": 2,
                "tries": 2,
                "examples": [example],
            },
            {"blame": "harness", "cause": "container_lost", "attempts": 2, "tries": 4},
        ],
        "nodes": [
            {"node": "n1", "running": 2, "free_slots": 6, "draining": ""},
            {"node": "n2", "running": 2, "free_slots": 0, "draining": "the disk is full"},
        ],
        "lost_nodes": 1,
        "parked_endpoints": ["luna"],
        "throttled_endpoints": ["sonnet"],
        "budget_share": 0.25,
        "running": [
            {
                "attempt": ATTEMPT,
                "try": "1-4",
                "index": 1,
                "task": "buzz-native/greet",
                "condition": "solver",
                "node": "n1",
                "phase": "drive",
            }
        ],
        "notes": ["node n3 is lost: no answer"],
    }
    return LiveSweep.model_validate_json(json.dumps({**values, **changes}))


def trial_document(**changes: Any) -> LiveTrial:
    """A running trial with a short conversation."""
    usage = {"calls": 3, "input_tokens": 4100, "output_tokens": 80, "cost_usd": 0.002}
    values: dict[str, Any] = {
        "number": 1,
        "sweep": SWEEP,
        "attempt": ATTEMPT,
        "index": 1,
        "try": "1-4",
        "condition": "solver",
        "task": "buzz-native/greet",
        "node": "n1",
        "phase": "drive",
        "elapsed_s": 12.0,
        "agents": [
            {
                "agent": "solo-1",
                "turns_started": 1,
                "turns_ended": 0,
                "tool_calls": 2,
                "usage": usage,
            }
        ],
        "calls": [],
        "log": [{"agent": "solo-1", "text": "turn starting for channel x"}],
        "channel": conversation().model_dump(mode="json"),
    }
    return LiveTrial.model_validate_json(json.dumps({**values, **changes}))


def put(store: Store, document: LiveSweep) -> None:
    """Writes a document as its driver does."""
    store.put(live_key(document.sweep), document.to_json().encode())


def claim(store: Store, generation: int = 1, **more: Any) -> None:
    """Writes the claim of a driver, by default of one that nobody knows to be over."""
    values = {
        "sweep": SWEEP,
        "generation": generation,
        "host": "box",
        "started_at": "2026-01-01T00:00:00Z",
    }
    document = DriverClaim.model_validate({**values, **more}).to_json().encode()
    store.put(claim_key(SWEEP, generation), document)


def drawn(screen: RenderableType, width: int, *, colour: bool = False) -> list[str]:
    """The lines of a screen, without the blanks at their ends."""
    console = Console(
        width=width, force_terminal=colour, color_system="truecolor" if colour else None
    )
    with console.capture() as capture:
        console.print(screen)
    return [line.rstrip() for line in capture.get().rstrip("\n").split("\n")]
