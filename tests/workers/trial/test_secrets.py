"""No spelling of a secret passes."""

from __future__ import annotations

import base64
import time

from hypothesis import given
from hypothesis import strategies as st

from workers.nostr.keys import Keypair
from workers.trial.secrets import STRUCK_OUT, Secrets


def test_every_spelling_of_a_key_is_struck_out() -> None:
    keys = Keypair.generate()
    secrets = Secrets()
    secrets.add_key(keys.secret_hex, keys.nsec)
    for spelling in (
        keys.secret_hex,
        keys.secret_hex.upper(),
        keys.nsec,
        keys.nsec.upper(),
        base64.b64encode(bytes.fromhex(keys.secret_hex)).decode(),
    ):
        data = f"before {spelling} after".encode()
        assert secrets.found_in(data)
        assert secrets.strike(data) == b"before " + STRUCK_OUT + b" after"


def test_a_public_key_stays() -> None:
    keys = Keypair.generate()
    secrets = Secrets()
    secrets.add_key(keys.secret_hex, keys.nsec)
    assert secrets.strike(keys.pubkey.encode()) == keys.pubkey.encode()


def test_the_text_of_the_object_shows_nothing() -> None:
    secrets = Secrets()
    secrets.add_token("a-token-of-the-gateway")
    assert "a-token" not in repr(secrets)


@given(before=st.binary(max_size=80), after=st.binary(max_size=80))
def test_nothing_is_found_after_striking(before: bytes, after: bytes) -> None:
    secrets = Secrets()
    secrets.add_token("tok-0123456789abcdef")
    assert not secrets.found_in(secrets.strike(before + b"tok-0123456789abcdef" + after))


def test_a_secret_that_is_noted_later_is_struck_out_too() -> None:
    secrets = Secrets()
    secrets.add_token("token-of-the-first")
    assert secrets.strike(b"token-of-the-first") == STRUCK_OUT
    secrets.add_token("token-of-the-second")
    both = b"token-of-the-first token-of-the-second"
    assert secrets.strike(both) == STRUCK_OUT + b" " + STRUCK_OUT


def test_a_large_directory_is_noted_at_once() -> None:
    """A pattern made anew for each of a directory's keys would take most of a minute."""
    secrets, started = Secrets(), time.process_time()
    for number in range(1, 401):
        keys = Keypair.from_secret(f"{number:064x}")
        secrets.add_key(keys.secret_hex, keys.nsec)
        secrets.add_attestation(f"{number:0128x}")
    assert secrets.strike(b"nothing") == b"nothing"
    assert time.process_time() - started < 5
