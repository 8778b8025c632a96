"""``apiary bench gateway``: what it adds to a model call."""

from __future__ import annotations

import asyncio

import click

from scheduler.cli.bench.ending import ended_by_sigterm
from scheduler.cli.bench.showing import say_progress, show_figures
from scheduler.cli.bench.turn_options import turn_options
from scheduler.cli.exits import Exit
from scheduler.cli.options import json_option


@click.command("gateway")
@turn_options("requests", 200, "prompts and answers")
@json_option
def gateway(requests: int, rounds: int, seed: int, as_json: bool) -> int:
    """Send the same requests through the gateway and straight to a scripted endpoint.

    Whole and streamed answers take turns, one request after another, and several at once. Client,
    gateway and endpoint share one process.
    """
    # Here because the gateway's libraries take a moment to load.
    from scheduler.bench.gateway import measure_gateway

    with ended_by_sigterm():
        figures = asyncio.run(measure_gateway(requests, rounds, seed, say_progress))
    show_figures(figures, as_json=as_json)
    return Exit.DONE
