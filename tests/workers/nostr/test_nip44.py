"""Encryption between two keys (NIP-44 v2), judged by vectors published with its text."""

from __future__ import annotations

import pytest

from tests.workers.nostr import nip44
from workers.nostr.curve import shared_x
from workers.nostr.engram import conversation_key
from workers.nostr.errors import EngramError, KeyFormatError
from workers.nostr.keys import Keypair

# Secret key, public key, conversation key.
CONVERSATIONS = [
    (
        "315e59ff51cb9209768cf7da80791ddcaae56ac9775eb25b6dee1234bc5d2268",
        "c2f9d9948dc8c7c38321e4b85c8558872eafa0641cd269db76848a6073e69133",
        "3dfef0ce2a4d80a25e7a328accf73448ef67096f65f79588e358d9a0eb9013f1",
    ),
    (
        "a1e37752c9fdc1273be53f68c5f74be7c8905728e8de75800b94262f9497c86e",
        "03bb7947065dde12ba991ea045132581d0954f042c84e06d8c00066e23c1a800",
        "4d14f36e81b8452128da64fe6f1eae873baae2f444b02c950b90e43553f2178b",
    ),
    (
        "98a5902fd67518a0c900f0fb62158f278f94a21d6f9d33d30cd3091195500311",
        "aae65c15f98e5e677b5050de82e3aba47a6fe49b3dab7863cf35d9478ba9f7d1",
        "9c00b769d5f54d02bf175b7284a1cbd28b6911b06cda6666b2243561ac96bad7",
    ),
]

# First secret key, second secret key, nonce, text, payload.
PAYLOADS = [
    (
        "0000000000000000000000000000000000000000000000000000000000000001",
        "0000000000000000000000000000000000000000000000000000000000000002",
        "0000000000000000000000000000000000000000000000000000000000000001",
        "a",
        "AgAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAABee0G5VSK0/9YypIObAtDKfYEAjD35uVkHyB0F4DwrcNa"
        "CXlCWZKaArsGrY6M9wnuTMxWfp1RTN9Xga8no+kF5Vsb",
    ),
    (
        "0000000000000000000000000000000000000000000000000000000000000002",
        "0000000000000000000000000000000000000000000000000000000000000001",
        "f00000000000000000000000000000f00000000000000000000000000000000f",
        "\U0001f355\U0001fac3",
        "AvAAAAAAAAAAAAAAAAAAAPAAAAAAAAAAAAAAAAAAAAAPSKSK6is9ngkX2+cSq85Th16oRTISAOfhStnixqZziKMD"
        "vB0QQzgFZdjLTPicCJaV8nDITO+QfaQ61+KbWQIOO2Yj",
    ),
    (
        "8f40e50a84a7462e2b8d24c28898ef1f23359fff50d8c509e6fb7ce06e142f9c",
        "b9b0a1e9cc20100c5faa3bbe2777303d25950616c4c6a3fa2e3e046f936ec2ba",
        "b20989adc3ddc41cd2c435952c0d59a91315d8c5218d5040573fc3749543acaf",
        "ability\U0001f91d\u7684 \u023a\u023e",
        "ArIJia3D3cQc0sQ1lSwNWakTFdjFIY1QQFc/w3SVQ6yvbG2S0x4Yu86QGwPTy7mP3961I1XqB6SFFTzqDZZavhxo"
        "WMj7mEVGMQIsh2RLWI5EYQaQDIePSnXPlzf7CIt+voTD",
    ),
    (
        "875adb475056aec0b4809bd2db9aa00cff53a649e7b59d8edcbf4e6330b0995c",
        "9c05781112d5b0a2a7148a222e50e0bd891d6b60c5483f03456e982185944aae",
        "8d4442713eb9d4791175cb040d98d6fc5be8864d6ec2f89cf0895a2b2b72d1b1",
        "pepper\U0001f440\u0457\u0436\u0430\u043a",
        "Ao1EQnE+udR5EXXLBA2Y1vxb6IZNbsL4nPCJWisrctGxY3AduCS+jTUgAAnfvKafkmpy15+i9YMwCdccisRa8Svz"
        "W671T2JO4LFSPX31K4kYUKelSAdSPwe9NwO6LhOsnoJ+",
    ),
]

ORDER = "fffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141"
SOME_KEY = "1234567890abcdef1234567890abcdef1234567890abcdef1234567890abcdef"
SOME_SECRET = "0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f20"

# Secret key, public key: one of both is none.
NO_CONVERSATIONS = [
    ("f" * 64, SOME_KEY),
    ("0" * 64, SOME_KEY),
    (ORDER, SOME_KEY),
    (ORDER[:-3] + "139", "f" * 64),
    ("0" * 63 + "2", SOME_KEY),
    (SOME_SECRET, "0" * 64),
    (SOME_SECRET, "eb1f7200aecaa86682376fb1c13cd12b732221e774f553b0a0857f88fa20f86d"),
    (SOME_SECRET, "709858a4c121e4a84eb59c0ded0261093c71e8ca29efeef21a6161c447bcaf9f"),
]


@pytest.mark.parametrize(("secret", "pubkey", "key"), CONVERSATIONS)
def test_2_14_published_conversation_keys(secret: str, pubkey: str, key: str) -> None:
    assert conversation_key(Keypair.from_secret(secret), pubkey).hex() == key


@pytest.mark.parametrize(("secret", "pubkey"), NO_CONVERSATIONS)
def test_2_14_what_is_no_key_has_no_conversation(secret: str, pubkey: str) -> None:
    with pytest.raises(KeyFormatError):
        shared_x(secret, pubkey)


@pytest.mark.parametrize(("one", "two", "nonce", "text", "payload"), PAYLOADS)
def test_2_14_published_payloads_open_at_both_ends(
    one: str, two: str, nonce: str, text: str, payload: str
) -> None:
    left, right = Keypair.from_secret(one), Keypair.from_secret(two)
    assert left.decrypt(right.pubkey, payload) == text
    assert right.decrypt(left.pubkey, payload) == text
    key = conversation_key(left, right.pubkey)
    assert nip44.encrypt(key, bytes.fromhex(nonce), text) == payload


@pytest.mark.parametrize("place", [0, 1, 45, 80, 120])
def test_2_14_a_changed_payload_does_not_open(place: int) -> None:
    one, two, _, _, payload = PAYLOADS[0]
    other = "B" if payload[place] != "B" else "C"
    with pytest.raises(EngramError):
        Keypair.from_secret(one).decrypt(
            Keypair.from_secret(two).pubkey, payload[:place] + other + payload[place + 1 :]
        )


@pytest.mark.parametrize("payload", ["", "Ag==", "#Atqupco0", "AqxgToSh3H7iLYRJjoWAM+vSv/Y1mgNl"])
def test_2_14_what_is_no_payload_does_not_open(payload: str) -> None:
    one, two = Keypair.generate(), Keypair.generate()
    with pytest.raises(EngramError):
        one.decrypt(two.pubkey, payload)
