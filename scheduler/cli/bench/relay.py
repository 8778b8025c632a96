"""``apiary bench relay``: messages against an echo and their signatures."""

from __future__ import annotations

import asyncio

import click

from scheduler.cli.bench.ending import ended_by_sigterm
from scheduler.cli.bench.showing import say_progress, show_figures
from scheduler.cli.bench.turn_options import turn_options
from scheduler.cli.exits import Exit
from scheduler.cli.options import json_option


@click.command("relay")
@turn_options("messages", 500, "the messages' texts")
@json_option
def relay(messages: int, rounds: int, seed: int, as_json: bool) -> int:
    """Send an agent's messages to the relay over a WebSocket.

    The references are a bare WebSocket echo that says as much, with the same client, and the
    verification of the same messages' signatures, which no relay can spare.
    """
    # Here because the relay's libraries take a moment to load.
    from scheduler.bench.relay import measure_relay

    with ended_by_sigterm():
        figures = asyncio.run(measure_relay(messages, rounds, seed, say_progress))
    show_figures(figures, as_json=as_json)
    return Exit.DONE
