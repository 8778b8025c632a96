"""The pages over HTTP, as a client that is no browser sees them."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from scheduler.serve import Pages, ServeOptions
from tests.scheduler.cli.builders import write_try
from tests.scheduler.report.builders import record
from tests.scheduler.report.stores import START, large_store
from tests.scheduler.serve.hostile import SCRIPT, hostile_conversation
from workers.contract.agent_logs import pack
from workers.contract.outcome import Cause
from workers.contract.result import try_prefix
from workers.storage import Store

pytestmark = pytest.mark.long

BEFORE = START.replace(year=2025)
EARLIER = f"large-k-{BEFORE:%Y%m%dT%H%M%SZ}"
TOKEN = "a token of the operator's"
LOG = b"\x1b[2J<b>bold</b> \xff end"


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> tuple[Store, str, str]:
    """A store, its sweep, and an attempt of it that was hostile."""
    store, plan = large_store(
        tmp_path_factory.mktemp("store"), 2, evidence=lambda place: hostile_conversation()
    )
    attempt = plan.attempts[0].attempt
    large_store(Path(store.url.removeprefix("file://")), 1, started_at=BEFORE)
    prefix = try_prefix(plan.sweep, attempt, "1-1")
    store.put(f"{prefix}/logs/agents/<i>.log", LOG)
    store.put(f"{prefix}/logs/agents.zip", pack({"lead-1.stdout.log": b"9" * 70_000 + LOG}))
    store.put(f"{prefix}/page.html", SCRIPT.encode())
    return store, plan.sweep, attempt


def ask(
    store: Store, *paths: str, options: ServeOptions | None = None, **given: Any
) -> list[tuple[int, str, Mapping[str, str]]]:
    """Status, text and headers of each page."""

    async def all_of_them() -> list[tuple[int, str, Mapping[str, str]]]:
        answers: list[tuple[int, str, Mapping[str, str]]] = []
        async with (
            Pages(store, options or ServeOptions()) as pages,
            aiohttp.ClientSession(pages.url) as session,
        ):
            for path in paths:
                async with session.get(path, allow_redirects=False, **given) as answer:
                    answers.append(
                        (answer.status, await answer.text(errors="replace"), answer.headers)
                    )
        return answers

    return run(all_of_them())


def run(work: Coroutine[Any, Any, Any]) -> Any:
    """Runs it, bounded."""
    return asyncio.run(asyncio.wait_for(work, 60))


def test_every_page_of_a_sweep(world: tuple[Store, str, str]) -> None:
    store, sweep, attempt = world
    pages = ask(
        store,
        "/",
        f"/sweeps/{sweep}",
        f"/sweeps/{sweep}?verdict=fail&skip=20",
        f"/sweeps/{sweep}/attempts/{attempt}",
        f"/sweeps/{sweep}/attempts/{attempt}?try=1-1&whole",
        "/compare",
        f"/compare?a={EARLIER}&b={sweep}",
    )
    assert [status for status, _, _ in pages] == [200] * 7
    for _, text, headers in pages:
        assert SCRIPT not in text
        assert "\x1b" not in text
        assert "\u202e" not in text
        assert "default-src 'none'" in headers["Content-Security-Policy"]
    assert sweep in pages[0][1]
    assert f"/sweeps/{sweep}/attempts/{attempt}" in pages[1][1]
    assert "996000 more characters" in pages[3][1]
    assert len(pages[4][1]) > 1_000_000


def test_raw_files_are_text_in_a_sandbox(world: tuple[Store, str, str]) -> None:
    store, sweep, attempt = world
    base = f"/sweeps/{sweep}/attempts/{attempt}/tries/1-1/files"
    for status, text, headers in ask(store, f"{base}/page.html", f"{base}/logs/agents/%3Ci%3E.log"):
        assert status == 200
        assert headers["Content-Type"] == "text/plain; charset=utf-8"
        assert "sandbox" in headers["Content-Security-Policy"]
        assert text in (SCRIPT, LOG.decode("utf-8", "replace"))


def test_the_logs_of_a_team_are_read_out_of_their_archive(
    world: tuple[Store, str, str], tmp_path: Path
) -> None:
    store, sweep, attempt = world
    page = f"/sweeps/{sweep}/attempts/{attempt}"
    log = f"{page}/tries/1-1/files/logs/agents.zip/lead-1.stdout.log"
    (_, shown, _), (status, whole, _), (gone, _, _) = ask(store, page, log, f"{log}.no")
    assert f'href="{log}"' in shown
    assert (status, len(whole), gone) == (200, len(LOG) + 70_000, 404)
    other, plan = large_store(tmp_path, 1)
    spoiled = plan.attempts[0].attempt
    other.put(f"{try_prefix(plan.sweep, spoiled, '1-1')}/logs/agents.zip", b"PK no archive")
    page = f"/sweeps/{plan.sweep}/attempts/{spoiled}"
    archive = f"{page}/tries/1-1/files/logs/agents.zip"
    (status, shown, _), (no_member, why, _) = ask(other, page, f"{archive}/lead-1.stdout.log")
    assert status == 200 and "PK no archive" in shown
    assert no_member >= 400 and "no archive of logs" in why


def test_what_is_not_there_says_so(world: tuple[Store, str, str]) -> None:
    store, sweep, attempt = world
    paths = (
        "/nothing",
        "/sweeps/nothing",
        "/sweeps/.hidden",
        f"/sweeps/{sweep}/attempts/{'0' * 32}",
        f"/sweeps/{sweep}/attempts/{attempt}?try=9-9",
        f"/sweeps/{sweep}/attempts/{attempt}/tries/1-1/files/..%2F..%2Ftry.json",
        f"/sweeps/{sweep}/attempts/{attempt}/tries/1-1/files/%00",
        f"/sweeps/{sweep}/report",
        f"/compare?a={sweep}&b=nothing",
    )
    for path, (status, text, _) in zip(paths, ask(store, *paths), strict=True):
        assert status == 404, path
        assert "<main" in text, path


def test_a_sweep_is_not_compared_with_itself(world: tuple[Store, str, str]) -> None:
    store, sweep, _ = world
    [(status, text, _)] = ask(store, f"/compare?a={sweep}&b={sweep}")
    assert status == 400
    assert "would be compared with itself" in text


def test_a_store_that_fails_is_said_and_not_shown_as_empty(world: tuple[Store, str, str]) -> None:
    store, sweep, _ = world
    key = f"sweeps/{sweep}x/lock-1.json"
    store.put(key, b"{}")
    try:
        (broken, text, _), (listed, row, _) = ask(store, f"/sweeps/{sweep}x", "/")
    finally:
        store.delete(key)
    assert broken == 502
    assert "lock-1.json" in text
    assert listed == 200
    assert f"{sweep}x" in row


def test_a_page_that_has_not_changed_is_not_sent_again(world: tuple[Store, str, str]) -> None:
    store, sweep, _ = world
    [(_, _, headers)] = ask(store, f"/sweeps/{sweep}")
    [(status, text, _)] = ask(store, f"/sweeps/{sweep}", headers={"If-None-Match": headers["ETag"]})
    assert (status, text) == (304, "")


def test_new_results_appear(tmp_path: Path) -> None:
    store, plan = large_store(tmp_path, 2, settled=10)
    next_one = plan.attempts[10]

    async def watched() -> tuple[str, str]:
        async with (
            Pages(store, ServeOptions()) as pages,
            aiohttp.ClientSession(pages.url) as session,
        ):
            async with session.get(f"/sweeps/{plan.sweep}") as answer:
                before = await answer.text()
            made = record(Cause.NONE, next_one.attempt, 1, sweep=plan.sweep, cell=next_one.cell)
            write_try(store, made)
            deadline = asyncio.get_running_loop().time() + 20
            after = before
            while after == before and asyncio.get_running_loop().time() < deadline:
                await asyncio.sleep(0.2)
                async with session.get(f"/sweeps/{plan.sweep}") as answer:
                    after = await answer.text()
        return before, after

    before, after = run(watched())
    assert "data-live" in before
    assert "10 of 100 attempts" in before
    assert "11 of 100 attempts" in after


def test_without_the_token_nothing_is_told(world: tuple[Store, str, str]) -> None:
    store, sweep, attempt = world
    options = ServeOptions(token=TOKEN)
    paths = ("/", f"/sweeps/{sweep}", f"/sweeps/{sweep}/attempts/{attempt}", "/live.js")
    for status, text, headers in ask(store, *paths, options=options):
        assert status == 401
        assert sweep not in text
        assert headers["WWW-Authenticate"] == "Bearer"
    bearer = {"Authorization": f"Bearer {TOKEN}"}
    assert all(
        status == 200 for status, _, _ in ask(store, *paths, options=options, headers=bearer)
    )


def test_a_browser_enters_by_a_form(world: tuple[Store, str, str]) -> None:
    store, sweep, _ = world

    async def enter(token: str) -> tuple[int, int, str]:
        jar = aiohttp.CookieJar(unsafe=True)
        async with (
            Pages(store, ServeOptions(token=TOKEN)) as pages,
            aiohttp.ClientSession(pages.url, cookie_jar=jar) as session,
        ):
            async with session.post(
                "/enter", data={"token": token}, allow_redirects=False
            ) as answer:
                first, cookie = answer.status, answer.headers.get("Set-Cookie", "")
            async with session.get(f"/sweeps/{sweep}") as answer:
                return first, answer.status, cookie

    first, then, cookie = run(enter(TOKEN))
    assert (first, then) == (303, 200)
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    assert run(enter("wrong"))[:2] == (401, 401)


def test_another_name_for_this_machine_is_refused(world: tuple[Store, str, str]) -> None:
    store, sweep, _ = world
    [(status, text, _)] = ask(store, f"/sweeps/{sweep}", headers={"Host": "evil.example"})
    assert status == 421
    assert sweep not in text


def test_a_taken_port_is_an_error(world: tuple[Store, str, str]) -> None:
    store, _, _ = world

    async def twice() -> None:
        async with Pages(store, ServeOptions()) as first:
            port = int(first.url.rstrip("/").rpartition(":")[2])
            async with Pages(store, ServeOptions(port=port)):
                pass

    with pytest.raises(OSError, match="address already in use"):
        run(twice())
