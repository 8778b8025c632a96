"""Owner attestations (NIP-OA; vectors of Appendix A)."""

from __future__ import annotations

import json

import pytest

from workers.nostr.attestation import Attestation, attest, find
from workers.nostr.errors import AttestationError
from workers.nostr.keys import Keypair

OWNER = Keypair.from_secret("0" * 63 + "3")
AGENT = "a" * 64
SIG = (
    "20105c618d6e5d8f559cffb6f0d7a7b4f44f3a567e1be94c96378d45ac3625da"
    "34c2e7357ea1d3ce980978334546b3e740c155e81b833ebe140d519d39ed8867"
)


def test_2_13_the_published_signature_verifies() -> None:
    assert Attestation(OWNER.pubkey, "", SIG).verify(AGENT)


def test_2_13_it_is_good_for_its_agent_and_conditions_alone() -> None:
    assert not Attestation(OWNER.pubkey, "", SIG).verify("b" * 64)
    assert not Attestation(OWNER.pubkey, "kind=9", SIG).verify(AGENT)
    assert not Attestation(Keypair.generate().pubkey, "", SIG).verify(AGENT)


def test_2_13_what_is_attested_verifies_and_survives_both_carriers() -> None:
    made = attest(OWNER, AGENT, "kind=9&created_at<1800000000&created_at>0")
    assert made.verify(AGENT)
    assert Attestation.from_text(made.to_text()) == made
    assert Attestation.from_tag(made.to_tag()) == made
    assert json.loads(made.to_text()) == list(made.to_tag())


def test_2_13_the_shorthand_is_read() -> None:
    assert Attestation.from_text(f" [auth,{OWNER.pubkey},,{SIG}]\n").verify(AGENT)


def test_2_13_nobody_attests_itself() -> None:
    with pytest.raises(AttestationError):
        attest(OWNER, OWNER.pubkey)
    other = attest(OWNER, AGENT)
    assert not other.verify(OWNER.pubkey)


def test_2_13_its_signature_is_not_printed() -> None:
    assert SIG not in repr(Attestation(OWNER.pubkey, "", SIG))


@pytest.mark.parametrize(
    "conditions", ["kind=", "kind=01", "kind=-1", "kind>1", "created_at=1", "&", "kind=1&", "x"]
)
def test_2_13_malformed_conditions_are_refused(conditions: str) -> None:
    with pytest.raises(AttestationError):
        attest(OWNER, AGENT, conditions)
    with pytest.raises(AttestationError):
        Attestation.from_tag(("auth", OWNER.pubkey, conditions, SIG))


@pytest.mark.parametrize(
    "tag",
    [
        (),
        ("auth",),
        ("auth", OWNER.pubkey, "", SIG, "more"),
        ("other", OWNER.pubkey, "", SIG),
        ("auth", OWNER.pubkey.upper(), "", SIG),
        ("auth", OWNER.pubkey, "", SIG.upper()),
        ("auth", 1, "", SIG),
        ("auth", OWNER.pubkey, None, SIG),
        ("auth", OWNER.pubkey, "", None),
    ],
)
def test_2_13_a_malformed_tag_is_refused(tag: tuple[object, ...]) -> None:
    with pytest.raises(AttestationError):
        Attestation.from_tag(tag)


@pytest.mark.parametrize("text", ["", "{}", "[", "[auth]", "null", '["auth"]', "[" * 100_000])
def test_2_13_a_malformed_text_is_refused(text: str) -> None:
    with pytest.raises(AttestationError):
        Attestation.from_text(text)


def test_2_13_of_two_attestations_neither_is_found() -> None:
    tag = attest(OWNER, AGENT).to_tag()
    assert find([("p", AGENT), tag]) == Attestation.from_tag(tag)
    assert find([tag, tag]) is None
    assert find([tag, ("auth", "junk")]) is None
    assert find([("auth", "junk")]) is None
    assert find([]) is None
