from __future__ import annotations

import pytest

from tests.workers.agent.worlds import World, buzz


def test_the_own_profile(world: World) -> None:
    assert world.buzz("users", "get").data == [
        {"display_name": "solo-1", "pubkey": world.agent.pubkey}
    ]


def test_profiles_by_key_and_by_part_of_a_name(world: World) -> None:
    one = world.party("Taylor Lee", about="Code ORCHID-72.")
    two = world.party("Taylor Lee", about="Code COBALT-19.")
    by_key = world.buzz("users", "get", "--pubkey", one.pubkey, "--pubkey", two.pubkey).data
    assert {row["pubkey"]: row["about"] for row in by_key} == {
        one.pubkey: "Code ORCHID-72.",
        two.pubkey: "Code COBALT-19.",
    }
    by_name = world.buzz("users", "get", "--name", "taylor").data
    assert {row["pubkey"] for row in by_name} == {one.pubkey, two.pubkey}
    owner = world.owner.pubkey
    mine = world.buzz("users", "get", "--name", "taylor lee", "--owner", owner).data
    assert len(mine) == 2
    assert world.buzz("users", "get", "--name", "taylor lee", "--owner", "me").data == []
    assert world.buzz("users", "get", "--name", "taylor", "--owner", owner).data == []


def test_setting_a_profile_keeps_what_is_not_named(world: World) -> None:
    told = world.buzz("users", "set-profile", "--about", "An agent.")
    assert told.data["accepted"]
    row = world.buzz("users", "get").data[0]
    assert row["display_name"] == "solo-1"
    assert row["about"] == "An agent."
    world.buzz("users", "set-profile", "--name", "New")
    assert world.buzz("users", "get").data[0]["display_name"] == "New"


def test_what_does_not_go_together(world: World) -> None:
    assert world.buzz("users", "set-profile").code == 1
    assert world.buzz("users", "get", "--owner", "me").code == 1
    assert world.buzz("users", "get", "--name", "x", "--pubkey", "0" * 64).code == 1


def test_without_a_key_or_with_a_foreign_attestation_it_is_error_3(world: World) -> None:
    variables = world.variables(world.agent)
    del variables["BUZZ_PRIVATE_KEY"]
    assert buzz("users", "get", variables=variables).fault["error"] == "key_error"
    variables = world.variables(world.agent)
    variables["BUZZ_AUTH_TAG"] = world.user.attestation.to_text()
    told = buzz("users", "get", variables=variables)
    assert (told.code, told.fault["error"]) == (3, "key_error")


def test_whom_the_relay_does_not_admit_gets_error_3(world: World) -> None:
    variables = world.variables(world.agent)
    del variables["BUZZ_AUTH_TAG"]
    told = buzz("users", "get", variables=variables)
    assert (told.code, told.fault["error"]) == (3, "auth_error")


def test_a_relay_that_is_not_there_is_error_2(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workers.agent.bridge._JITTER_S", (0.0, 0.0))
    variables = {"BUZZ_PRIVATE_KEY": "1" * 64, "BUZZ_RELAY_URL": "ws://127.0.0.1:1"}
    told = buzz("users", "get", variables=variables)
    assert (told.code, told.fault["error"], told.fault["retryable"]) == (2, "network_error", True)


def test_presence_reads(world: World) -> None:
    told = world.buzz("users", "presence", "--pubkeys", world.agent.pubkey)
    assert told.code == 0
    assert isinstance(told.data, list)
