"""The owner's key by the name of its variable."""

from __future__ import annotations

from pathlib import Path

import pytest

from workers.contract.relay import Deployment
from workers.nostr.keys import Keypair
from workers.owner_key import NoOwnerKeyError, OwnerKeyError, owner_for, read_owner


@pytest.mark.parametrize("form", ["secret_hex", "nsec"])
def test_from_the_variable_or_from_a_file(tmp_path: Path, form: str) -> None:
    owner = Keypair.generate()
    file = tmp_path / "owner"
    file.write_text(f"{getattr(owner, form)}\n")
    assert read_owner("OWNER", {"OWNER": getattr(owner, form)}) == owner
    assert read_owner("OWNER", {"OWNER_FILE": str(file)}) == owner


def test_a_relay_of_ones_own_needs_none() -> None:
    assert owner_for("embedded", {}) is None
    named = Deployment(url="ws://localhost:3600", owner_key_env="OWNER")
    with pytest.raises(NoOwnerKeyError, match=r"OWNER_FILE names, must hold .* it is not set"):
        owner_for(named, {})


@pytest.mark.parametrize("value", ["f" * 64, "nsec1nothing", "abc"])
def test_what_is_no_key_is_not_repeated(tmp_path: Path, value: str) -> None:
    with pytest.raises(OwnerKeyError, match="holds no secret key") as caught:
        read_owner("OWNER", {"OWNER": value})
    assert value not in str(caught.value)
    assert caught.value.__cause__ is None
    with pytest.raises(OwnerKeyError, match="OWNER_FILE names a file that cannot be read"):
        read_owner("OWNER", {"OWNER_FILE": str(tmp_path)})
