from __future__ import annotations

import json

import pytest

from workers.container import door_wire
from workers.container.door_wire import Request, WireError
from workers.container.interface import (
    ContainerError,
    ContainerLostError,
    Killed,
    NoDoorError,
    Process,
)

ID = "ab" * 32


@pytest.mark.parametrize(
    "request_",
    [Request("listen", ID, port=3600), Request("kill_all", ID, timeout_s=5.0)],
)
def test_a_request_is_read_as_it_was_written(request_: Request) -> None:
    assert door_wire.read_request(door_wire.write_request(request_)) == request_


@pytest.mark.parametrize(
    ("told", "words"),
    [
        ({"version": 2}, "version 1"),
        ({"act": "exec"}, "act"),
        ({"act": ["listen"]}, "act"),
        ({"pid": 1}, "expected version, act"),
        ({"timeout_s": 1}, "expected version, act"),
        ({"container": "web"}, "64 hex digits"),
        ({"container": ID.upper()}, "64 hex digits"),
        ({"container": f"{ID}\n"}, "64 hex digits"),
        ({"container": 5}, "64 hex digits"),
        ({"port": 0}, "port"),
        ({"port": 65536}, "port"),
        ({"port": True}, "port"),
        ({"port": "80"}, "port"),
    ],
)
def test_what_is_no_request_is_refused(told: dict[str, object], words: str) -> None:
    sound: dict[str, object] = {"version": 1, "act": "listen", "container": ID, "port": 3600}
    with pytest.raises(WireError, match=words):
        door_wire.read_request(json.dumps({**sound, **told}).encode() + b"\n")


@pytest.mark.parametrize("line", [b"", b"\xff\n", b"[]\n", b"[" * 100_000, b'{"version": 1}\n'])
def test_what_is_no_line_of_the_protocol_is_refused(line: bytes) -> None:
    with pytest.raises(WireError):
        door_wire.read_request(line)
    with pytest.raises(WireError):
        door_wire.read_answer(line, "kill_all")


@pytest.mark.parametrize("seconds", [0, -1, 61, float("inf"), float("nan"), True, "5", None])
def test_killing_is_bounded(seconds: object) -> None:
    told = {"version": 1, "act": "kill_all", "container": ID, "timeout_s": seconds}
    with pytest.raises(WireError, match="timeout_s"):
        door_wire.read_request(json.dumps(told).encode())


def test_an_answer_is_read_as_it_was_written() -> None:
    done = Killed((Process(5, 1, "sleep 1"),), (Process(6, 1, "\u2028 odd"),))
    assert door_wire.read_answer(door_wire.write_answer(done), "kill_all") == done
    assert door_wire.read_answer(door_wire.write_answer(), "listen") is None
    with pytest.raises(WireError, match="no answer to listen"):
        door_wire.read_answer(door_wire.write_answer(done), "listen")


def test_many_processes_fit_into_an_answer() -> None:
    process = Process(2**22, 2**22, "\u2028" * 200)
    line = door_wire.write_answer(Killed((process,) * 30_000, (process,) * 30_000))
    assert len(line) < door_wire.ANSWER_BYTES
    assert door_wire.read_answer(line, "kill_all") is not None


@pytest.mark.parametrize("rows", [5, [5], [[1, 2]], [["1", 2, "x"]], [[1, 2, None]]])
def test_processes_that_are_none_are_refused(rows: object) -> None:
    told = {"version": 1, "killed": rows, "survivors": []}
    with pytest.raises(WireError, match="process"):
        door_wire.read_answer(json.dumps(told).encode(), "kill_all")


@pytest.mark.parametrize("error", [ContainerLostError, NoDoorError, ContainerError])
def test_a_fault_keeps_its_kind(error: type[ContainerError]) -> None:
    with pytest.raises(error, match="why") as caught:
        door_wire.read_answer(door_wire.write_fault(error("why")), "listen")
    assert type(caught.value) is error
