"""Ray's death seen from outside: processes that end, addresses that do not answer."""

from __future__ import annotations

import socket
import subprocess
import sys

from scheduler.ray_watch import CUT_S, REFUSED_S, RayWatch


def test_a_server_process_that_ended_is_the_end_of_a_local_ray() -> None:
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    watch = RayWatch({"the raylet": process.pid}, "")
    assert watch.why_lost(0.0) == ""
    process.kill()
    process.wait(10.0)
    assert f"the raylet on this machine (process {process.pid}) died" in watch.why_lost(1.0)
    if process.stdin is not None:
        process.stdin.close()


def test_a_head_may_be_away_for_a_moment_and_is_lost_after_a_while() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        head = f"127.0.0.1:{server.getsockname()[1]}"
        watch = RayWatch({}, head)
        assert watch.why_lost(0.0) == ""
    assert watch.why_lost(REFUSED_S) == ""
    why = watch.why_lost(REFUSED_S + 1.0)
    assert head in why
    assert "has not been reachable for 21 s" in why


def test_a_head_that_no_word_comes_from_may_be_away_for_longer() -> None:
    def silent(_: str) -> None:
        raise TimeoutError("timed out")

    watch = RayWatch({}, "head:6379", silent)
    assert watch.why_lost(0.0) == ""
    assert watch.why_lost(CUT_S) == ""
    assert "head:6379 has not been reachable for 61 s" in watch.why_lost(CUT_S + 1.0)


def test_a_head_that_comes_back_is_not_lost() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    watch = RayWatch({}, f"127.0.0.1:{port}")
    assert watch.why_lost(0.0) == ""
    with socket.create_server(("127.0.0.1", port)):
        assert watch.why_lost(REFUSED_S + 1.0) == ""
    assert watch.why_lost(2 * REFUSED_S) == ""


def test_where_nothing_is_known_nothing_is_lost() -> None:
    assert RayWatch({}, "").why_lost(0.0) == ""
