from __future__ import annotations

import hashlib
import hmac
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from scheduler.series.notice import Notice
from scheduler.series.notify import DELIVERY, SIGNATURE, Notifier
from scheduler.series.schedule_file import Notify

pytestmark = pytest.mark.long

SECRET = "correct horse battery staple"
NOTICE = Notice(
    id="nightly/2026-06-02T00:30:00Z",
    series="nightly",
    due="2026-06-02T00:30:00Z",
    sweep="nightly-20260602T003000Z",
    events=("regression",),
    outcome="regression",
    exit_code=3,
    text="✗ regression: nightly",
    moved=(),
    evidence="/store/report.html",
)


class Receiver:
    """A local HTTP server that gives these answers in turn; a status of 0 hangs up."""

    def __init__(self, *answers: int) -> None:
        self.requests: list[tuple[dict[str, str], bytes]] = []
        self.url = ""
        self._answers = list(answers)

    @contextmanager
    def listening(self) -> Iterator[Receiver]:
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                receiver.requests.append((dict(self.headers), body))
                status = receiver._answers.pop(0)
                if status == 0:
                    self.connection.close()
                    return
                self.send_response(status)
                if status == 302:
                    self.send_header("Location", f"{receiver.url}/elsewhere")
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, format: str, *values: Any) -> None:
                pass

            def handle_one_request(self) -> None:
                try:
                    super().handle_one_request()
                except (OSError, ValueError):
                    self.close_connection = True

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        server.daemon_threads = True
        self.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield self
        finally:
            server.shutdown()
            server.server_close()
            thread.join(10.0)


def notifier(url: str, tmp_path: Path, **more: Any) -> Notifier:
    notify = Notify.model_validate(
        {"webhook": {"url_env": "HOOK", "secret_env": "HOOK_SECRET"}, **more}
    )
    environment = {"HOOK": url, "HOOK_SECRET": SECRET}
    return Notifier(
        notify, tmp_path, environment, pauses_s=(0.01, 0.01, 0.01), answer_s=5.0, clock=lambda: 1e9
    )


def test_a_server_that_fails_first_is_asked_again_with_the_same_signed_notice(
    tmp_path: Path,
) -> None:
    with Receiver(500, 0, 204).listening() as receiver:
        told = notifier(receiver.url, tmp_path).tell(NOTICE)
    assert told == ("webhook: delivered at try 3",)
    bodies = {body for _, body in receiver.requests}
    assert len(receiver.requests) == 3 and len(bodies) == 1
    headers, body = receiver.requests[-1]
    assert json.loads(body) == json.loads(NOTICE.to_json())
    assert headers[DELIVERY] == NOTICE.id
    wanted = hmac.new(SECRET.encode(), b"1000000000." + body, hashlib.sha256).hexdigest()
    assert headers[SIGNATURE] == f"t=1000000000,v1={wanted}"


@pytest.mark.parametrize(
    ("answers", "tries", "told"),
    [
        ((503, 503, 503, 503), 4, "webhook: not delivered in 4 tries: HTTP 503"),
        ((429, 200), 2, "webhook: delivered at try 2"),
        ((404,), 1, "webhook: not delivered: HTTP 404"),
        ((302,), 1, "webhook: not delivered: HTTP 302"),
    ],
)
def test_what_a_server_answers(
    tmp_path: Path, answers: tuple[int, ...], tries: int, told: str
) -> None:
    with Receiver(*answers).listening() as receiver:
        assert notifier(receiver.url, tmp_path).tell(NOTICE) == (told,)
    assert len(receiver.requests) == tries


def test_nobody_there_is_said_without_the_address(tmp_path: Path) -> None:
    (told,) = notifier("http://127.0.0.1:1/secret-path", tmp_path).tell(NOTICE)
    assert told.startswith("webhook: not delivered in 4 tries: Client")
    assert "secret-path" not in told


@pytest.mark.parametrize("name", ["HOOK", "HOOK_SECRET"])
def test_a_variable_that_is_not_set_is_named(tmp_path: Path, name: str) -> None:
    environment = {"HOOK": "http://127.0.0.1:1", "HOOK_SECRET": SECRET}
    del environment[name]
    notify = Notify.model_validate({"webhook": {"url_env": "HOOK", "secret_env": "HOOK_SECRET"}})
    (told,) = Notifier(notify, tmp_path, environment).tell(NOTICE)
    assert told == f"webhook: not sent: the variable {name} is not set"


def test_an_address_that_is_none_is_not_tried_again(tmp_path: Path) -> None:
    (told,) = notifier("not a url", tmp_path).tell(NOTICE)
    assert told == "webhook: not delivered: InvalidUrlClientError"


def test_what_nobody_wishes_for_is_not_told(tmp_path: Path) -> None:
    notify = Notify.model_validate({"events": ("outage",), "file": "notices"})
    assert Notifier(notify, tmp_path, {}).tell(NOTICE) == ()
    assert not (tmp_path / "notices").exists()


def test_a_file_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "taken").mkdir()
    notify = Notify.model_validate({"file": "taken"})
    (told,) = Notifier(notify, tmp_path, {}).tell(NOTICE)
    assert told == "file taken: not written: Is a directory"
