from __future__ import annotations

import asyncio
import contextlib
import socketserver
import threading
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.workers.container.engines import BASE, Bench, spec
from workers.container.api import ConflictError, DockerApi, MissingError, demultiplexed
from workers.container.calls import CallTimeoutError
from workers.container.interface import ContainerError


@given(st.lists(st.binary(max_size=30)), st.binary(max_size=7))
def test_framed_output_is_joined_and_a_torn_frame_dropped(parts: list[bytes], torn: bytes) -> None:
    framed = b"".join(b"\1\0\0\0" + len(part).to_bytes(4, "big") + part for part in parts)
    assert demultiplexed(framed + torn) == b"".join(parts)


def test_an_engine_that_is_not_there_is_an_error_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere/docker.sock")
    with pytest.raises(ContainerError, match="connect to the Docker engine"):
        DockerApi(1)


class Mute(BaseHTTPRequestHandler):
    """Answers what is asked first, then no more."""

    def do_GET(self) -> None:
        if self.path == "/version":
            body = b'{"ApiVersion": "1.41"}'
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
        else:
            self.connection.recv(1)  # until the client hangs up

    def log_message(self, *_: object) -> None: ...

    def address_string(self) -> str:
        return "client"


def test_an_engine_that_does_not_answer_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = str(tmp_path / "docker.sock")
    with socketserver.ThreadingUnixStreamServer(path, Mute) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        monkeypatch.setenv("DOCKER_HOST", f"unix://{path}")
        with contextlib.closing(DockerApi(1)) as api:
            for _ in range(2):  # on a new connection, and on one that was used before
                with pytest.raises(CallTimeoutError, match=r"facts: .*did not answer in time"):
                    api.info(0.05)
        server.shutdown()
        thread.join()


@pytest.mark.docker
def test_refusals_become_errors_of_ours() -> None:
    with contextlib.closing(DockerApi(1)) as api:
        with pytest.raises(MissingError, match=r"inspect container 0123: .*0123.*404"):
            api.inspect("0123", 20)
        with pytest.raises(MissingError, match="inspect image no/such"):
            api.image_id("no/such:image", 20)


@pytest.mark.docker
def test_a_container_that_does_not_run_cannot_be_killed(bench: Bench) -> None:
    async def scenario() -> None:
        async with bench.engine() as engine:
            container = await engine.start(spec("true"), 60)
            await container.ended(60)
            with pytest.raises(ConflictError, match="not running"):
                engine.api.kill(container.id, 20)
            await container.remove(60)

    asyncio.run(scenario())


@pytest.mark.docker
def test_an_image_has_an_id() -> None:
    with contextlib.closing(DockerApi(1)) as api:
        assert api.image_id(BASE, 20).startswith("sha256:")
