"""``apiary bench``: what Apiary promises, measured on this machine; one file a bench.

A command here parses and prints; what it measures is in ``scheduler/bench/``, loaded when it runs.
"""

from __future__ import annotations

import click

from scheduler.cli.bench.chaos import chaos
from scheduler.cli.bench.docker import docker
from scheduler.cli.bench.gateway import gateway
from scheduler.cli.bench.relay import relay
from scheduler.cli.bench.report import report
from scheduler.cli.bench.scheduler import scheduler
from scheduler.cli.bench.store import store
from scheduler.cli.bench.trial import trial


@click.group("bench")
def command() -> None:
    """Measure what Apiary promises."""


for each in (docker, trial, scheduler, relay, gateway, store, report, chaos):
    command.add_command(each)
