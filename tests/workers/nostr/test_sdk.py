"""Signatures judged by published vectors (BIP-340) and by their own change."""

from __future__ import annotations

import pytest

from workers.nostr import sdk

# BIP-340 test-vectors.csv: index, public key, message, signature, verdict.
VECTORS = [
    (
        "F9308A019258C31049344F85F89D5229B531C845836F99B08601F113BCE036F9",
        "0000000000000000000000000000000000000000000000000000000000000000",
        "E907831F80848D1069A5371B402410364BDF1C5F8307B0084C55F1CE2DCA8215"
        "25F66A4A85EA8B71E482A74F382D2CE5EBEEE8FDB2172F477DF4900D310536C0",
        True,
    ),
    (
        "DFF1D77F2A671C5F36183726DB2341BE58FEAE1DA2DECED843240F7B502BA659",
        "243F6A8885A308D313198A2E03707344A4093822299F31D0082EFA98EC4E6C89",
        "6896BD60EEAE296DB48A229FF71DFE071BDE413E6D43F917DC8DCF8C78DE3341"
        "8906D11AC976ABCCB20B091292BFF4EA897EFCB639EA871CFA95F6DE339E4B0A",
        True,
    ),
    (  # has_even_y(R) is false
        "DFF1D77F2A671C5F36183726DB2341BE58FEAE1DA2DECED843240F7B502BA659",
        "243F6A8885A308D313198A2E03707344A4093822299F31D0082EFA98EC4E6C89",
        "FFF97BD5755EEEA420453A14355235D382F6472F8568A18B2F057A1460297556"
        "3CC27944640AC607CD107AE10923D9EF7A73C643E166BE5EBEAFA34B1AC553E2",
        False,
    ),
    (  # public key not on the curve
        "EEFDEA4CDB677750A420FEE807EACF21EB9898AE79B9768766E4FAA04A2D4A34",
        "243F6A8885A308D313198A2E03707344A4093822299F31D0082EFA98EC4E6C89",
        "6CFF5C3BA86C69EA4B7376F31A9BCB4F74C1976089B2D9963DA2E5543E177769"
        "69E89B4C5564D00349106B8497785DD7D1D713A8AE82B32FA79D5F7FC407D39B",
        False,
    ),
]


@pytest.mark.parametrize(("pubkey", "message", "signature", "verdict"), VECTORS)
def test_published_vectors(pubkey: str, message: str, signature: str, verdict: bool) -> None:
    found = sdk.verify(pubkey.lower(), bytes.fromhex(message), signature.lower())
    assert found is verdict


def test_a_signature_is_good_for_its_digest_and_key_alone() -> None:
    signer, digest = sdk.generate(), b"\x07" * 32
    signature = signer.sign(digest)
    assert sdk.verify(signer.pubkey(), digest, signature)
    assert not sdk.verify(signer.pubkey(), b"\x08" * 32, signature)
    assert not sdk.verify(sdk.generate().pubkey(), digest, signature)
    assert not sdk.verify(signer.pubkey(), digest[:31], signature)
    assert not sdk.verify('","kind":2,"x":"', digest, signature)


def test_only_digests_are_signed() -> None:
    with pytest.raises(ValueError, match="32 bytes"):
        sdk.generate().sign(b"short")
