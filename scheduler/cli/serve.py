"""``apiary serve``: the sweeps of a store as pages, read only."""

from __future__ import annotations

import asyncio
import json
import signal

import click

from scheduler.cli.exits import Exit, UsageFault
from scheduler.cli.options import human_console, json_option, opened, store_option
from scheduler.serve import Pages, ServeOptions
from scheduler.serve.guard import is_loopback
from scheduler.settings import read_settings
from workers.storage.interface import Store

SHORTEST_TOKEN = 16


@click.command("serve")
@store_option
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port",
    default=8420,
    show_default=True,
    type=click.IntRange(0, 65535),
    help="Port; 0 takes any free one.",
)
@click.option(
    "--token-env",
    metavar="NAME",
    help="Every request needs the token that this environment variable holds.",
)
@json_option
def command(
    store_url: str | None, host: str, port: int, token_env: str | None, as_json: bool
) -> int:
    """Serve the sweeps of a store as pages that change nothing.

    A list of sweeps, each sweep with its attempts, each attempt with its transcript, phases,
    model requests and logs, and two sweeps side by side. Pages of a running sweep renew
    themselves.
    """
    store = opened(store_url)
    token = None if token_env is None else _token(token_env)
    if token is None and not is_loopback(host):
        human_console().print(
            f"! whoever reaches {host} sees everything in {store.url}; "
            "--token-env NAME asks for a token",
            markup=False,
        )
    try:
        asyncio.run(_serve(store, ServeOptions(host, port, token), as_json))
    except OSError as error:
        raise UsageFault(f"cannot listen on {host}:{port}: {error.strerror}") from error
    return Exit.DONE


def _token(name: str) -> str:
    token = read_settings().environment.get(name, "").strip()
    if len(token) < SHORTEST_TOKEN:
        raise UsageFault(f"--token-env: {name} must hold {SHORTEST_TOKEN} characters or more")
    return token


async def _serve(store: Store, options: ServeOptions, as_json: bool) -> None:
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, ended.set)
    async with Pages(store, options) as pages:
        click.echo(json.dumps({"url": pages.url}) if as_json else pages.url)
        human_console().print(f"{store.url}; Ctrl-C ends it", markup=False)
        await ended.wait()
