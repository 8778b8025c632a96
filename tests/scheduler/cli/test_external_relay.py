"""A deployment's relay is looked at before a sweep; a second process of ours stands for it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from scheduler.cli import run_cli
from scheduler.cli.exits import Exit
from scheduler.doctor import relay_finding
from scheduler.lock import read_locks
from scheduler.lock_plan import plan_from_lock
from tests.scheduler.cli.builders import FakeDriver, World
from tests.second_relay import URL, SecondRelay, second_relay
from workers.contract.relay import Deployment
from workers.nostr.keys import Keypair
from workers.storage import open_store

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def there(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecondRelay]:
    with second_relay(tmp_path_factory.mktemp("relay")) as relay:
        yield relay


def flags(relay: SecondRelay, url: str = URL) -> list[str]:
    return [
        *("--relay-url", url),
        *("--relay-owner-key-env", "RELAY_OWNER"),
        *("--relay-gateway", relay.gateway),
    ]


@pytest.fixture
def owner(there: SecondRelay, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RELAY_OWNER_FILE", str(there.owner_file))


def test_a_plan_says_which_relay_it_found(
    world: World, there: SecondRelay, owner: None, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_cli(["plan", str(world.sweep), *flags(there)]) == Exit.DONE
    line = f"relay {URL} by way of {there.gateway}: Buzz Relay"
    assert line in capsys.readouterr().out
    assert run_cli(["plan", str(world.sweep), "--json", *flags(there)]) == Exit.DONE
    plan = json.loads(capsys.readouterr().out)
    assert plan["relay"]["url"] == URL
    assert plan["relay_seen"]["community"] == "relay.deployment.test:3600"


def test_a_plan_without_the_key_still_sees_whether_the_relay_is_ready(
    world: World, there: SecondRelay, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_cli(["plan", str(world.sweep), *flags(there)]) == Exit.DONE
    shown = capsys.readouterr()
    assert "RELAY_OWNER must hold the secret key of the relay's owner" in shown.err
    assert f"relay {URL}" in shown.out
    assert run_cli(["run", str(world.sweep), *flags(there)]) == Exit.USAGE
    assert "--relay-owner-key-env: the environment variable RELAY_OWNER" in capsys.readouterr().err


def test_a_lock_says_what_the_relay_was_and_resumes_there(
    world: World, there: SecondRelay, owner: None, driver: FakeDriver
) -> None:
    assert run_cli(["run", str(world.sweep), "--lock-only", *flags(there)]) == Exit.DONE
    store = open_store(world.store_url)
    (sweep,) = {key.split("/")[1] for key in store.keys("sweeps/")}
    lock = read_locks(store, sweep)[-1]
    assert lock.relay != "embedded"
    assert (lock.relay.url, lock.relay.owner_key_env) == (URL, "RELAY_OWNER")
    assert lock.relay_seen is not None
    assert lock.relay_seen.software == "apiary"
    plan = plan_from_lock(lock)
    assert (plan.spec.relay, plan.relay_seen) == (lock.relay, lock.relay_seen)
    written = b"".join(path.read_bytes() for path in world.root.rglob("*") if path.is_file())
    assert there.owner.nsec.encode() not in written
    assert there.owner.secret_hex.encode() not in written


@pytest.mark.parametrize(
    ("key", "url", "words"),
    [
        ("stranger", URL, "is no member of community relay.deployment.test:3600"),
        ("owner", "ws://other.test:3600", "serves no community other.test:3600"),
        ("owner", "wss://relay.deployment.test:3600", "is it running, and is this its address?"),
        ("junk", URL, "holds no secret key"),
    ],
)
def test_an_unfit_relay_is_refused_before_anything_starts(
    world: World,
    there: SecondRelay,
    driver: FakeDriver,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    key: str,
    url: str,
    words: str,
) -> None:
    keys = {
        "owner": there.owner.nsec,
        "stranger": Keypair.generate().secret_hex,
        "junk": "nothing-of-the-kind",
    }
    monkeypatch.setenv("RELAY_OWNER", keys[key])
    for command in ("plan", "run"):
        assert run_cli([command, str(world.sweep), *flags(there, url)]) == Exit.INFRASTRUCTURE
        shown = capsys.readouterr()
        assert words in shown.err
        assert keys[key] not in shown.err + shown.out
        assert "Traceback" not in shown.err
    assert driver.calls == []
    assert not (world.root / ".apiary").exists()


def test_a_doctor_looks_at_it(there: SecondRelay) -> None:
    named = Deployment(url=URL, owner_key_env="RELAY_OWNER", gateway=there.gateway)
    found = relay_finding(named, {"RELAY_OWNER": there.owner.secret_hex})
    assert found.state == "ok"
    assert found.found.startswith(f"{URL} by way of {there.gateway}: Buzz Relay 0.1.0, owner's key")
    found = relay_finding(named, {"RELAY_OWNER": Keypair.generate().secret_hex})
    assert (found.state, found.todo) == ("fail", "see docs/external-relay.md")
    assert "no member" in found.found
    assert relay_finding(None, {}).state == "ok"


@pytest.mark.parametrize(
    "arguments", [["--relay-url", URL], ["--relay-url", "http://h", "--relay-owner-key-env", "X"]]
)
def test_half_a_relay_is_no_question_for_a_doctor(arguments: list[str]) -> None:
    assert run_cli(["doctor", *arguments]) == Exit.USAGE


def test_a_relay_that_does_not_answer_is_told(
    tmp_path: Path,
    world: World,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with second_relay(tmp_path) as relay:
        relay.kill()
        monkeypatch.setenv("RELAY_OWNER", relay.owner.nsec)
        assert run_cli(["run", str(world.sweep), *flags(relay)]) == Exit.INFRASTRUCTURE
    assert f"by way of {relay.gateway}): GET /_readiness" in capsys.readouterr().err
