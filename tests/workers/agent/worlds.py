"""A relay with a channel in a thread of its own, a scripted model, and ``buzz`` calls on them."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple, TypeVar

from workers.agent.commands.call import Call
from workers.agent.commands.program import run
from workers.agent.identity import Identity
from workers.nostr.attestation import Attestation, attest
from workers.nostr.keys import Keypair
from workers.relay.client import RelayClient
from workers.relay.server import EmbeddedRelay

T = TypeVar("T")
WAIT_S = 20.0


class Loop:
    """An event loop in a thread, for the parts that are asynchronous."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def run(self, body: Coroutine[Any, Any, T]) -> T:
        """Runs a coroutine there and gives its result here."""
        return asyncio.run_coroutine_threadsafe(body, self._loop).result(WAIT_S)

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(WAIT_S)
        self._loop.close()


def listening() -> socket.socket:
    """A listening socket on a free port of the loopback."""
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen(64)
    return listener


class Party(NamedTuple):
    """An identity of the world with its client."""

    keypair: Keypair
    attestation: Attestation
    client: RelayClient

    @property
    def pubkey(self) -> str:
        return self.keypair.pubkey

    def identity(self) -> Identity:
        return Identity(self.keypair, self.attestation)


class Told(NamedTuple):
    """What a ``buzz`` command gave."""

    code: int
    output: str
    errors: str

    @property
    def data(self) -> Any:
        return json.loads(self.output)

    @property
    def fault(self) -> Any:
        return json.loads(self.errors)


class World:
    """One relay with a private channel of a user and an agent."""

    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self.owner = Keypair.generate()
        listener = listening()
        self.host = f"localhost:{listener.getsockname()[1]}"
        self.relay = EmbeddedRelay(owner_pubkey=self.owner.pubkey, host=self.host)
        self.run(self.relay.serve(listener))
        self._clients: list[RelayClient] = []
        self.user = self.party("Jane Q. Doe")
        self.agent = self.party("solo-1")
        self.channel = self.run(self.user.client.create_channel("trial", about="a trial"))
        self.join(self.agent)

    def run(self, body: Coroutine[Any, Any, T]) -> T:
        return self._loop.run(body)

    def party(self, name: str, about: str | None = None) -> Party:
        """A fresh identity with a published profile."""
        keypair = Keypair.generate()
        attestation = attest(self.owner, keypair.pubkey)
        client = RelayClient(f"http://{self.host}", keypair, attestation)
        self.run(client.__aenter__())
        self._clients.append(client)
        self.run(client.set_profile(name, about))
        return Party(keypair, attestation, client)

    def join(self, party: Party, role: str = "member") -> None:
        self.run(self.user.client.add_member(self.channel, party.pubkey, role))

    def variables(self, party: Party) -> dict[str, str]:
        """What a ``buzz`` command of that identity finds in its environment."""
        return {
            "BUZZ_RELAY_URL": f"ws://{self.host}",
            "BUZZ_PRIVATE_KEY": party.keypair.secret_hex,
            "BUZZ_AUTH_TAG": party.attestation.to_text(),
        }

    def buzz(self, *words: str, stdin: bytes | None = None, as_: Party | None = None) -> Told:
        """Runs a command as the agent, or as somebody else."""
        return buzz(*words, stdin=stdin, variables=self.variables(as_ or self.agent))

    def close(self) -> None:
        for client in self._clients:
            self.run(client.__aexit__(None, None, None))
        self.run(self.relay.close())


def buzz(
    *words: str, stdin: bytes | None = None, variables: dict[str, str], directory: str = "/"
) -> Told:
    """Runs a command in a given environment; without ``stdin`` it may not read any."""

    def read() -> bytes:
        assert stdin is not None, "the command read standard input"
        return stdin

    call = Call(words, variables, directory, read)
    code = run(call)
    return Told(code, call.output().decode(), call.errors().decode())


@contextmanager
def open_world() -> Iterator[World]:
    loop = Loop()
    try:
        world = World(loop)
        try:
            yield world
        finally:
            world.close()
    finally:
        loop.close()


Answer = Callable[[str, dict[str, Any]], "tuple[int, Any]"]


class ModelServer:
    """An endpoint that answers what a function says, and keeps the requests."""

    def __init__(self, answer: Answer) -> None:
        self.requests: list[tuple[str, dict[str, str], Any]] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                headers = {name.lower(): value for name, value in self.headers.items()}
                outer.requests.append((self.path, headers, body))
                status, data = answer(self.path, body)
                text = data if isinstance(data, bytes) else json.dumps(data).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join(WAIT_S)
        self._server.server_close()


@contextmanager
def open_model(answer: Answer) -> Iterator[ModelServer]:
    server = ModelServer(answer)
    try:
        yield server
    finally:
        server.close()


def chat_say(text: str) -> dict[str, Any]:
    """A chat completion that ends the turn."""
    message = {"role": "assistant", "content": text}
    return {
        "choices": [{"message": message, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 7, "completion_tokens": 3},
    }


def chat_run(*commands: str) -> dict[str, Any]:
    """A chat completion that asks for shell commands."""
    calls = [
        {
            "id": f"call-{number}",
            "type": "function",
            "function": {"name": "shell", "arguments": json.dumps({"command": command})},
        }
        for number, command in enumerate(commands)
    ]
    message = {"role": "assistant", "content": None, "tool_calls": calls}
    return {"choices": [{"message": message, "finish_reason": "tool_calls"}]}
