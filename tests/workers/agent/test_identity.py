from __future__ import annotations

import pytest

from workers.agent.identity import Identity
from workers.nostr import http_auth
from workers.nostr.attestation import attest
from workers.nostr.errors import AttestationError, KeyFormatError
from workers.nostr.keys import Keypair

OWNER, AGENT = Keypair.generate(), Keypair.generate()
PROOF = attest(OWNER, AGENT.pubkey)


def test_what_is_signed_carries_the_attestation_last() -> None:
    me = Identity.from_texts(AGENT.secret_hex, PROOF.to_text())
    event = me.sign(9, [("h", "c")], "hi")
    assert event.tags == (("h", "c"), PROOF.to_tag())
    assert event.verify()
    assert Identity.from_texts(AGENT.secret_hex, " ").sign(9, [], "hi").tags == ()


def test_a_time_can_be_pushed_on_but_not_back() -> None:
    me = Identity(AGENT, None, now=lambda: 1000.9)
    assert me.sign(0, [], "").created_at == 1000
    assert me.sign(0, [], "", not_before=1005).created_at == 1005
    assert me.sign(0, [], "", not_before=5).created_at == 1000


def test_requests_are_signed_for_their_address_and_body() -> None:
    me = Identity(AGENT, PROOF, now=lambda: 1000.0)
    headers = me.http_headers("http://localhost:3600/query", b"[]")
    event = http_auth.check(
        headers["Authorization"],
        url="http://localhost:3600/query",
        method="POST",
        body=b"[]",
        now=1000.0,
    )
    assert event.pubkey == AGENT.pubkey
    assert headers["x-auth-tag"] == PROOF.to_text()
    assert "x-auth-tag" not in Identity(AGENT, None).http_headers("http://x/y", b"")


def test_what_is_no_identity() -> None:
    with pytest.raises(KeyFormatError):
        Identity.from_texts("nonsense", "")
    with pytest.raises(AttestationError):
        Identity.from_texts(AGENT.secret_hex, "nonsense")
    with pytest.raises(AttestationError, match="not one for this key"):
        Identity.from_texts(OWNER.secret_hex, PROOF.to_text())
