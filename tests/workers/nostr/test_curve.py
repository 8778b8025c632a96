"""The shared x coordinate, against the curve's own laws and NIP-44's published key."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workers.nostr.curve import ORDER, PRIME, shared_x
from workers.nostr.errors import KeyFormatError
from workers.nostr.keys import Keypair

GENERATOR_X = "79be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798"
SCALARS = st.integers(1, ORDER - 1).map(lambda number: f"{number:064x}")


@settings(max_examples=20, deadline=None)
@given(secret=SCALARS)
def test_a_secret_times_the_generator_is_its_public_key(secret: str) -> None:
    assert shared_x(secret, GENERATOR_X).hex() == Keypair.from_secret(secret).pubkey


@settings(max_examples=20, deadline=None)
@given(left=SCALARS, right=SCALARS)
def test_both_ends_find_the_same_point(left: str, right: str) -> None:
    one, other = Keypair.from_secret(left), Keypair.from_secret(right)
    assert shared_x(left, other.pubkey) == shared_x(right, one.pubkey)


@pytest.mark.parametrize(
    ("secret", "pubkey"),
    [
        ("0" * 64, GENERATOR_X),
        (f"{ORDER:064x}", GENERATOR_X),
        ("0" * 63 + "1", "0" * 64),
        ("0" * 63 + "1", f"{PRIME:064x}"),
        ("0" * 63 + "1", f"{5:064x}"),  # 5³ + 7 has no square root
        ("canary", GENERATOR_X),
    ],
)
def test_what_is_no_key_is_refused_and_not_repeated(secret: str, pubkey: str) -> None:
    with pytest.raises(KeyFormatError) as caught:
        shared_x(secret, pubkey)
    assert secret not in str(caught.value)
