"""``apiary bench store``: objects by our doors and by bare means."""

from __future__ import annotations

import click

from scheduler.cli.bench.ending import ended_by_sigterm
from scheduler.cli.bench.showing import say_progress, show_figures
from scheduler.cli.bench.turn_options import turn_options
from scheduler.cli.exits import Exit
from scheduler.cli.options import json_option
from scheduler.settings import read_settings


@click.command("store")
@turn_options("objects", 200, "keys and contents")
@json_option
def store(objects: int, rounds: int, seed: int, as_json: bool) -> int:
    """Put, create, get and list objects of 4 KiB in a file store and on S3.

    The references are bare files that are flushed to disk, and a bare boto3 client. The S3 server
    is started on this machine.
    """
    # Here because boto3 takes a moment to load.
    from scheduler.bench.store import measure_store
    from scheduler.bench.store_turns import Task

    task = Task(objects=objects, rounds=rounds, seed=seed)
    with ended_by_sigterm():
        figures = measure_store(read_settings(), task, say_progress)
    show_figures(figures, as_json=as_json)
    return Exit.DONE
