"""``apiary relay serve``: one relay on a port, for debugging and for other clients."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import click

from scheduler.cli.exits import Exit, UsageFault
from scheduler.cli.options import human_console, json_option
from workers.nostr.attestation import attest
from workers.nostr.errors import KeyFormatError
from workers.nostr.keys import Keypair
from workers.relay import EmbeddedRelay, EventFile, EventFileError
from workers.relay.limits import Limits
from workers.relay.rates import Quota, Rates

_REACHED_AT = {"0.0.0.0": "127.0.0.1", "::": "::1"}


class RateText(click.ParamType[Quota]):
    """``COUNT/SECONDS``."""

    name = "count/seconds"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The quota that a text says."""
        if isinstance(value, Quota):
            return value
        count, _, seconds = str(value).partition("/")
        if not count.isdecimal() or not seconds.isdecimal() or not int(count) * int(seconds):
            self.fail(f"expected COUNT/SECONDS, for example 300/60, found {value!r}", param, ctx)
        return Quota(int(count), int(seconds))


@click.group("relay")
def command() -> None:
    """Serve a relay."""


@command.command("serve")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port", default=0, type=click.IntRange(0, 65535), help="Port; by default any free one."
)
@click.option(
    "--url",
    metavar="URL",
    help="Serve as a deployment with this RELAY_URL: requests that name another host get 404. Of "
    "wss:// something before it must end TLS.",
)
@click.option(
    "--api-rate",
    type=RateText(),
    help="Requests over HTTP per key, for example 300/60 (a deployment's); by default no limit.",
)
@click.option(
    "--frame-rate", type=RateText(), help="Likewise, WebSocket frames (a deployment's: 50/5)."
)
@click.option(
    "--message-rate", type=RateText(), help="Likewise, messages (a deployment's: 120/60)."
)
@click.option(
    "--events",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Keep signed events in this file, and begin with those that it holds.",
)
@click.option(
    "--owner",
    "owner_file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="File with the owner's secret key (hex or nsec); by default a fresh key.",
)
@click.option(
    "--keys",
    "key_count",
    default=0,
    type=click.IntRange(0, 100),
    help="Make so many agents' keys with the owner's attestation and PRINT THEIR SECRETS.",
)
@json_option
def serve(
    host: str,
    port: int,
    url: str | None,
    api_rate: Quota | None,
    frame_rate: Quota | None,
    message_rate: Quota | None,
    events: Path | None,
    owner_file: Path | None,
    key_count: int,
    as_json: bool,
) -> int:
    """Serve one relay until Ctrl-C.

    It admits the owner and every key that the owner attests, and nobody else. With --url it is
    what a sweep takes for a deployment (see docs/external-relay.md). Without --events it forgets
    everything at its end; with it, name the same --owner again, or earlier keys stay outside.
    """
    if owner_file is None and not key_count:
        raise UsageFault("nobody could use this relay: name an --owner, or ask for --keys 1")
    owner = Keypair.generate() if owner_file is None else _owner(owner_file)
    rates = Rates(api_rate, frame_rate, message_rate)
    scheme, authority = ("ws", None) if url is None else _parts(url)
    relay = EmbeddedRelay(
        owner_pubkey=owner.pubkey,
        host=authority,
        secure=scheme == "wss",
        limits=Limits(rates=rates),
    )
    with ExitStack() as stack:
        try:
            if events is not None:
                _remember(relay, stack.enter_context(EventFile(events)))
            listener = _listen(host, port)
        except EventFileError as error:
            raise UsageFault(str(error)) from error
        listens = _address(_REACHED_AT.get(host, host), listener.getsockname()[1])
        shown = {
            **_introduction(relay, owner, f"{scheme}://{authority or listens}", key_count),
            "listens": listens,
        }
        asyncio.run(_serve(relay, listener, shown, as_json))
    return Exit.DONE


def _parts(url: str) -> tuple[str, str]:
    """Scheme and authority of a relay's own address."""
    scheme, _, authority = url.rstrip("/").partition("://")
    if scheme not in ("ws", "wss") or not authority or "/" in authority:
        raise UsageFault(f"--url must be ws://host[:port] or wss://host[:port], found {url!r}")
    return scheme, authority


def _owner(path: Path) -> Keypair:
    try:
        return Keypair.from_secret(path.read_text("utf-8"))
    except (KeyFormatError, UnicodeDecodeError):
        # The cause is dropped: it might repeat what the file holds.
        raise UsageFault(f"{path}: not a secret key (64 hex digits or nsec)") from None


def _remember(relay: EmbeddedRelay, file: EventFile) -> None:
    """Begins with a file's events and adds to it all that follow."""
    held = file.read()
    refused = relay.restore(held)
    for event, reason in refused:
        human_console().print(f"! not replayed: {event.id}: {reason}", markup=False)
    human_console().print(f"{len(held)} events read")
    relay.record(file.append)


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family)
    except OSError as error:
        raise UsageFault(f"cannot listen on {host}:{port}: {error.strerror}") from error


def _address(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _introduction(relay: EmbeddedRelay, owner: Keypair, url: str, key_count: int) -> dict[str, Any]:
    """What a client needs to know; secrets of made keys are here because they were asked for."""
    made = [Keypair.generate() for _ in range(key_count)]
    return {
        "url": url,
        "relay": relay.pubkey,
        "owner": owner.pubkey,
        "keys": [
            {
                "pubkey": pair.pubkey,
                "secret": pair.nsec,
                "auth_tag": attest(owner, pair.pubkey).to_text(),
            }
            for pair in made
        ],
    }


async def _serve(
    relay: EmbeddedRelay, listener: socket.socket, shown: dict[str, Any], as_json: bool
) -> None:
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, ended.set)
    await relay.serve(listener)
    try:
        click.echo(json.dumps(shown) if as_json else _lines(shown))
        human_console().print(f"owner {shown['owner']}; Ctrl-C ends it")
        await ended.wait()
    finally:
        await relay.close()


def _lines(shown: dict[str, Any]) -> str:
    """The address, then for each key what the ``buzz`` command reads from its environment."""
    blocks = [str(shown["url"])]
    blocks += [
        f"BUZZ_RELAY_URL={shown['url']}\n"
        f"BUZZ_PRIVATE_KEY={key['secret']}\n"
        f"BUZZ_AUTH_TAG='{key['auth_tag']}'"
        for key in shown["keys"]
    ]
    return "\n\n".join(blocks)
