"""``apiary model serve``: a scripted model behind the usual three dialects."""

from __future__ import annotations

import asyncio
import json
import signal

import click

from scheduler.cli.exits import Exit, UsageFault
from scheduler.cli.options import human_console, json_option
from workers.model import PROFILES, ScriptedModel
from workers.model.profiles import PREFIX


@click.group("model")
def command() -> None:
    """Serve a scripted model."""


@command.command("serve")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port", default=0, type=click.IntRange(0, 65535), help="Port; by default any free one."
)
@click.option("--seed", default=0, help="Of ids, token counts and delays.")
@click.option(
    "--slow-seconds",
    default=5.0,
    show_default=True,
    help="Mean delay of the profile `slow`.",
)
@json_option
def serve(host: str, port: int, seed: int, slow_seconds: float, as_json: bool) -> int:
    """Serve the profiles with known results until Ctrl-C.

    Chat completions, responses and messages are answered below the address that is printed;
    the name of the model chooses the profile.
    """
    model = ScriptedModel(seed=seed, host=host, port=port, slow_s=slow_seconds)
    try:
        asyncio.run(_serve(model, as_json))
    except OSError as error:
        raise UsageFault(f"cannot listen on {host}:{port}: {error.strerror}") from error
    return Exit.DONE


async def _serve(model: ScriptedModel, as_json: bool) -> None:
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, ended.set)
    async with model:
        names = [PREFIX + name for name in PROFILES]
        if as_json:
            click.echo(json.dumps({"base_url": model.base_url, "models": names}))
        else:
            click.echo(model.base_url)
            human_console().print(f"models: {', '.join(names)}; Ctrl-C ends it")
        await ended.wait()
