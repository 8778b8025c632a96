"""A sweep on the relay of a deployment, from its flags to its report."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.flow.sweeps import ROOT, Ran, apiary, left_in_docker
from tests.second_relay import SecondRelay, second_relay

pytestmark = [pytest.mark.docker, pytest.mark.ray]

TASKS = ("create-channel-invite-users", "interleaved-agent-reports")
"""Sixty identities, of which most stay outside; and three that speak in the channel."""
KNOWN = {
    ("create-channel-invite-users", "scripted-solver"): ("pass", set()),
    ("interleaved-agent-reports", "scripted-solver"): ("pass", set()),
    ("interleaved-agent-reports", "scripted-sloppy"): (
        "fail",
        {"reply_to_thread", "single_human_callback"},
    ),
    ("create-channel-invite-users", "scripted-sloppy"): ("pass", set()),
}
"""What the same attempts come to on relays of their own."""


class There(NamedTuple):
    """A sweep that ran there."""

    ran: Ran
    relay: SecondRelay


@pytest.fixture(scope="module")
def there(tmp_path_factory: pytest.TempPathFactory) -> Iterator[There]:
    home = tmp_path_factory.mktemp("external")
    with second_relay(tmp_path_factory.mktemp("relay")) as relay:
        data = ROOT / "manifests"
        ran = apiary(
            home,
            "run",
            *("--path", str(data / "tasks")),
            *(part for name in TASKS for part in ("-i", name)),
            *("--manifest", str(data / "conditions/scripted-solver.yaml")),
            *("--manifest", str(data / "conditions/scripted-sloppy.yaml")),
            *("--endpoint-config", str(ROOT / "deploy/endpoints/scripted.json")),
            *("--relay-url", relay.url, "--relay-gateway", relay.gateway),
            *("--relay-owner-key-env", "RELAY_OWNER", "-k", "1"),
            variables={"RELAY_OWNER_FILE": str(relay.owner_file)},
        )
        yield There(ran, relay)
    assert left_in_docker(ran.sweep) == {"containers": [], "volumes": [], "networks": []}


def test_verdicts_are_those_of_relays_of_their_own(there: There) -> None:
    assert (there.ran.errors, there.ran.code) == ("", 0)
    found = {
        (each["task"].rpartition("/")[2], each["condition"]): (
            each["verdict"],
            {name for name, value in each["dimensions"].items() if value < 1.0},
        )
        for each in there.ran.results
    }
    assert found == KNOWN


def test_every_record_names_the_relay_and_its_archived_channel(there: There) -> None:
    records = [json.loads((folder / "try.json").read_bytes()) for folder in there.ran.tries()]
    assert len({record["relay"]["channel_id"] for record in records}) == len(records) == 4
    for record in records:
        assert record["relay"]["url"] == there.relay.url
        assert record["relay"]["archived"] == "archived"
        assert record["leftovers"] == []


def test_identities_of_the_directory_are_the_same_in_every_try(there: There) -> None:
    keys: dict[str, set[str]] = {}
    agents = []
    for folder in there.ran.tries():
        evidence = json.loads((folder / "evidence.json").read_bytes())
        for row in evidence["directory"]:
            keys.setdefault(row["identity_id"] or row["name"], set()).add(row["pubkey"])
        agents.append(evidence["identities"]["solo-1"]["pubkey"])
    assert len(keys) == 63
    assert all(len(each) == 1 for each in keys.values())
    assert len(set(agents)) == 4


def test_the_lock_says_which_relay_and_nothing_says_the_owners_key(there: There) -> None:
    home = there.ran.home
    lock = json.loads((home / ".apiary/sweeps" / there.ran.sweep / "lock-1.json").read_bytes())
    assert lock["relay"]["url"] == there.relay.url
    assert lock["relay"]["owner_key_env"] == "RELAY_OWNER"
    assert lock["relay_seen"]["community"] == "relay.deployment.test:3600"
    assert lock["relay_seen"]["name"] == "Buzz Relay"
    secrets = (there.relay.owner.secret_hex.encode(), there.relay.owner.nsec.encode())
    files = [path for path in Path(home).rglob("*") if path.is_file()]
    assert len(files) > 50
    for path in files:
        data = path.read_bytes()
        assert not [1 for secret in secrets if secret in data], path
