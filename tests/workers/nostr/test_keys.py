"""Keys: pairs, formats, derived identities (vectors of the wire specification's Appendix A)."""

from __future__ import annotations

import pytest

from workers.nostr.errors import KeyFormatError
from workers.nostr.keys import Keypair, derive_identity, npub, parse_pubkey

OWNER_SECRET = "0" * 63 + "3"
OWNER_PUBKEY = "f9308a019258c31049344f85f89d5229b531c845836f99b08601f113bce036f9"


def test_the_pair_of_a_known_secret() -> None:
    pair = Keypair.from_secret(OWNER_SECRET)
    assert pair.pubkey == OWNER_PUBKEY
    assert pair.secret_hex == OWNER_SECRET


def test_a_secret_is_read_from_nsec_too() -> None:
    nsec = "nsec1vl029mgpspedva04g90vltkh6fvh240zqtv9k0t9af8935ke9laqsnlfe5"  # NIP-19's example
    assert Keypair.from_secret(nsec).secret_hex == (
        "67dea2ed018072d675f5415ecfaed7d2597555e202d85b3d65ea4e58d2d92ffa"
    )


def test_a_pair_never_prints_its_secret() -> None:
    pair = Keypair.generate()
    for text in (repr(pair), str(pair), f"{pair}", f"{pair!r}", repr([pair])):
        assert pair.secret_hex not in text


@pytest.mark.parametrize(
    "text",
    ["", "zz", "0" * 64, "f" * 64, "ab" * 31, "ab" * 33, "nsec1qqqq", "nsec1canary", "\ud800"],
)
def test_what_is_no_secret_is_refused_and_not_repeated(text: str) -> None:
    with pytest.raises(KeyFormatError) as caught:
        Keypair.from_secret(text)
    assert not text or text not in str(caught.value)
    assert caught.value.__cause__ is None


def test_fresh_pairs_differ_and_pairs_of_one_key_are_equal() -> None:
    pair = Keypair.generate()
    again = Keypair.from_secret(pair.secret_hex)
    assert pair == again
    assert hash(pair) == hash(again)
    assert pair != Keypair.generate()


def test_public_keys_in_hex_and_npub() -> None:
    text = npub(OWNER_PUBKEY)
    assert text.startswith("npub1")
    assert parse_pubkey(text) == OWNER_PUBKEY
    assert parse_pubkey(f" {OWNER_PUBKEY.upper()}\n") == OWNER_PUBKEY


@pytest.mark.parametrize("text", ["", "npub1x", "g" * 64, "ab" * 33])
def test_what_is_no_public_key_is_refused(text: str) -> None:
    with pytest.raises(KeyFormatError):
        parse_pubkey(text)
    with pytest.raises(KeyFormatError):
        npub(text)


@pytest.mark.parametrize(
    ("identity", "secret", "pubkey"),
    [
        (
            "benchmark-user-07",
            "190f6cb171a7fc9955ef61f972189efab74d5e1f49e190e87cb40f9a1e8de5db",
            "be014147804ae522465dccfb1b8ec9d69c3e2a84e2faa84b52230bc850abcd9f",
        ),
        (
            "benchmark-bot-03",
            "8aa175ccee8c4a6e64ad2e89137fbbeb398962b9dc9bd633bf2196e373ef46c0",
            "17adae260ee793ce6efb0668c52461553084ba672e92b19aaa6d148c19b05b7e",
        ),
        (
            "taylor-release-captain",
            "ae8864f310d731b94d98a5bb25aa0f0243d6bbc95849a18801e06e1e3585a58a",
            "fa39a09516b1e3872db03afce1170a7a93d0d85369a60b9331ef50cd0a601534",
        ),
        (
            "task-user:user-mention",
            "54f95ad833d3193405b7e0d4c87dd53bdb269d116e3da5b93c7d5e5d72f4881e",
            "0725089e19ad47c7a1f52fcd0e054b881fe83d38334567cd89d151e70a43eae3",
        ),
        (
            "Ledger Scout",
            "19b5effdb4d9443e1ca92f1de09511a0c63a8ab0c192f6391e8385c8f95d6485",
            "2bdda594f409d8ff3d1c8821d13ffb9927775028e0f007cf7189002c97dc8454",
        ),
    ],
)
def test_appendix_a_directory_identities_are_derived_from_the_owner(
    identity: str, secret: str, pubkey: str
) -> None:
    derived = derive_identity(Keypair.from_secret(OWNER_SECRET), identity)
    assert (derived.secret_hex, derived.pubkey) == (secret, pubkey)
