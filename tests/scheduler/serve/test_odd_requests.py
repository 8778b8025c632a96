"""Requests that no browser makes, and stores that are not as nodes and drivers leave them."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from scheduler.serve import Pages, ServeOptions
from tests.scheduler.report.generated import make_lock, write
from tests.scheduler.report.stores import large_store
from tests.scheduler.serve.test_server import ask, run
from workers.contract.outcome import Cause
from workers.contract.result import try_prefix
from workers.storage import Store, open_store

pytestmark = pytest.mark.long


def status(store: Store, request: bytes) -> tuple[int, bytes]:
    """Of the answer to these very bytes, its status and itself."""

    async def exchange() -> bytes:
        async with Pages(store, ServeOptions()) as pages:
            host, _, port = pages.url.removeprefix("http://").rstrip("/").partition(":")
            reader, writer = await asyncio.open_connection(host, int(port))
            writer.write(request)
            answer = await reader.read()
            writer.close()
            return answer

    answer = run(exchange())
    return int(answer.split(b" ", 2)[1]), answer


def request(path: str, *headers: str, host: str = "127.0.0.1", method: str = "GET") -> bytes:
    lines = [f"{method} {path} HTTP/1.1", f"Host: {host}", "Connection: close", *headers]
    return "\r\n".join([*lines, "", ""]).encode("latin-1")


@pytest.mark.parametrize(
    ("asked", "answered"),
    [
        (request("/?skip=" + "9" * 5000), 200),
        (request("/", host="["), 421),
        (request("/", host="a]b"), 421),
        (request("/", method="HEAD"), 200),
        (request("/", method="PUT"), 405),
        (request("/sweeps/..%2f..%2fetc"), 404),
        (request("/compare?a=%00&b=..%2f"), 404),
    ],
    ids=["digits", "bracket", "brackets", "head", "put", "traversal", "names"],
)
def test_an_odd_request_is_answered_like_any_other(
    tmp_path: Path, asked: bytes, answered: int
) -> None:
    code, answer = status(open_store(f"file://{tmp_path}"), asked)
    assert code == answered
    assert b"Content-Security-Policy: default-src" in answer


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("application/x-www-form-urlencoded; charset=nonsense", b"token=x"),
        ("application/x-www-form-urlencoded", b"token=\xff"),
        ("multipart/form-data; boundary=x", b"token=x"),
        ("multipart/form-data", b"token=x"),
    ],
)
def test_what_is_no_form_is_refused(tmp_path: Path, kind: str, body: bytes) -> None:
    headers = (f"Content-Type: {kind}", f"Content-Length: {len(body)}")
    asked = request("/enter", *headers, method="POST") + body
    assert status(open_store(f"file://{tmp_path}"), asked)[0] == 400


def test_what_lies_in_the_store_by_mistake_hides_nothing(tmp_path: Path) -> None:
    store, plan = large_store(tmp_path, 1, settled=3)
    first, second, third = (each.attempt for each in plan.attempts[:3])
    store.put(f"sweeps/{plan.sweep}/attempts/notes.json", b"x")
    (tmp_path / "sweeps" / "odd" / "lock-1.json").mkdir(parents=True)
    store.put("sweeps/odd/lock-1.json/x", b"")
    store.put(try_prefix(plan.sweep, first, "notes.txt"), b"x")
    store.put(f"{try_prefix(plan.sweep, second, '1-1')}/usage.jsonl", b'{"half')
    evidence = f"{try_prefix(plan.sweep, third, '1-1')}/evidence.json"
    text = store.get(evidence).replace(b'"created_at": 1', b'"created_at": 99999999999991')
    store.put(evidence, text)
    base = f"/sweeps/{plan.sweep}"
    pages = ask(store, "/", base, *(f"{base}/attempts/{each}" for each in (first, second, third)))
    assert [code for code, _, _ in pages] == [200] * 5
    assert f"3 of {len(plan.attempts)}" in pages[0][1]
    assert "1 line of usage.jsonl cannot be read" in pages[3][1]
    assert "??:??:??" in pages[4][1]


def test_a_regression_sweep_has_behaviours_and_no_empty_columns(tmp_path: Path) -> None:
    store = open_store(f"file://{tmp_path}")
    lock = make_lock(conditions=1, regression=2, workflow=0, attempts=2)
    store.put(f"sweeps/{lock.sweep}/lock-1.json", lock.to_json().encode())
    for place, cell in enumerate(lock.cells):
        for index in range(2):
            cause = Cause.WRONG if (place, index) == (0, 1) else Cause.NONE
            write(store, lock, cell.task, cell.condition, index, 1, cause)
    mixed = make_lock(name="mixed", conditions=1, regression=1, workflow=1)
    store.put(f"sweeps/{mixed.sweep}/lock-1.json", mixed.to_json().encode())
    (_, page, _), (_, other, _) = ask(store, f"/sweeps/{lock.sweep}", f"/sweeps/{mixed.sweep}")
    assert "pass rate" not in page
    assert "95 % interval" not in page
    assert "behaviours kept" in page
    assert '<td class="n">1 of 2</td>' in page
    assert "pass rate" in other
    assert "no driver has begun it" in other
    assert f"apiary resume {mixed.sweep}" in other
    assert "apiary resume" not in page
